"""The schema's history: plain SQL, ordered by alembic revisions.

One revision file and two SQL files per change, or a folder of them where they are many, and
the loader. From the first release on a published revision never changes; a change is a new
one (docs/operations/upgrade.md). Read from the installed package, so the SQL travels in the
wheel.
"""
