"""The schema's history: plain SQL, ordered by alembic revisions.

One revision file and two SQL files per change, and the loader. A published revision never
changes; a change is a new one. Read from the installed package, so the SQL travels in the
wheel.
"""
