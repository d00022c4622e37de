"""The adapter of Postgres.

The pool, the migrations, one repository per context, the translation of driver errors.
"""
