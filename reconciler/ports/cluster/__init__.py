"""What the application needs of a management cluster.

`adapters.kubernetes` implements these Protocols.
"""
