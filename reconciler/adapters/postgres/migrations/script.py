"""Hands the SQL of a revision to alembic.

The one loader.
"""

from __future__ import annotations

from importlib import resources

from alembic import op


def run(name: str) -> None:
    """Emit the statements of one SQL file of this package, as they are.

    Past alembic's bind-parameter parsing, because the files are complete SQL.
    """
    folder = resources.files("reconciler.adapters.postgres.migrations") / "versions"
    op.get_context().impl.static_output((folder / name).read_text(encoding="utf-8"))
