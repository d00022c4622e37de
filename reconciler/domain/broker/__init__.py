"""The broker context: one aggregate, its phases, its teardown, its events and errors.

Belongs here: what seeds 000 and 001 decide. Not here: nodes and tokens as things of
their own (`domain.identity`).
"""
