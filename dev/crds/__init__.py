"""Generates CustomResourceDefinitions from models: `deploy/crds` and `package/input`.

The translation of a pydantic model into a structural schema, and what a model cannot say
(names, columns, CEL rules). The Makefile and tests use it.
"""
