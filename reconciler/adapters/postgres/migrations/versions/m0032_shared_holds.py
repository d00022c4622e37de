"""Revision 0032; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0032_shared_holds.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0032_shared_holds.down.sql")
