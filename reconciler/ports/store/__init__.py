"""What the application needs of the database.

`adapters.postgres` implements these Protocols.
"""
