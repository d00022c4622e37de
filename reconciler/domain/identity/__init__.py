"""The identity context: bootstrap tokens, registrations, nodes and mesh addresses.

The rules of `POST /v1/register` and of a token's life.
"""
