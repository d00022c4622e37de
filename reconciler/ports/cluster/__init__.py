"""The ports of a management cluster.

`adapters.kubernetes` implements these Protocols.
"""
