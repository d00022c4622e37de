"""The identity context: bootstrap tokens, registrations, nodes and mesh addresses.

Belongs here: the rules of `POST /v1/register` and of a token's life. Not here: hashing,
keys and rows, which are adapters.
"""
