"""Revision 0001; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Apply the revision."""
    script.run("0001_foundation.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0001_foundation.down.sql")
