"""Generates secrets: tokens, node keys and signing keys.

The cryptographic sources.
"""
