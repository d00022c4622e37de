"""Generates the CustomResourceDefinitions of `deploy/crds` from the contract's models.

Belongs here: the translation of a pydantic model into a structural schema, and what a
model cannot say (names, columns, CEL rules). Not here: the models, which are
`function.contract`'s; the XRDs, which are written by hand. The Makefile and tests use it.
"""
