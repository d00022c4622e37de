"""Explains why a declared resource is not Ready: the culprit, who has to act, the next command.

`broker why` gathers the facts and prints the answer.
"""
