"""Decides which objects are protected on a node's behalf, and for how long.

`app.protection` places and releases the holds.
"""
