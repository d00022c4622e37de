"""The listener for nodes: `/v1/register` and the rest of the node contract.

`wiring.listeners` binds it.
"""
