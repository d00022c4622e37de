"""Reads what a diagnosis is made from, with the rights of whoever asks.

`broker why` uses it; it only reads, and a refused read is a fact and no error.
"""
