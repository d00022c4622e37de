"""Generates CustomResourceDefinitions from models: `deploy/crds` and `package/input`.

Belongs here: the translation of a pydantic model into a structural schema, and what a
model cannot say (names, columns, CEL rules). Not here: the models, which are
`function.contract`'s and the inputs'; the XRDs, which are written by hand. The Makefile
and tests use it.
"""
