"""Where secrets come from: tokens, node keys and signing keys.

The cryptographic sources.
"""
