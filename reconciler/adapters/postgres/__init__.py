"""Everything that speaks to Postgres.

Belongs here: the pool, the migrations, one repository per context, the translation of
driver errors. Not here: decisions. asyncpg is imported below this folder alone; only
`wiring` and tests import from here.
"""
