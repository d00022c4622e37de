"""The ports of the database.

`adapters.postgres` implements these Protocols.
"""
