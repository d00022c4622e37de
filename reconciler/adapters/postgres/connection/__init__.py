"""The connection pool, leases and fencing, driver errors, schema revisions.

Every other room of this adapter reads and writes through it.
"""
