"""Decides what one node composes: its record, its substrate, its conditions. Pure.

`inputs` calls `pipeline` with the facts of each node; `stage` is the decision table.
"""
