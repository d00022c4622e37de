"""The listener for operators: health, metrics and the read API.

`wiring.listeners` binds it.
"""
