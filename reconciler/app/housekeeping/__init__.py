"""Periodic work beside the controller: the orphan sweep and retention.

`wiring` runs each in an interval of its own.
"""
