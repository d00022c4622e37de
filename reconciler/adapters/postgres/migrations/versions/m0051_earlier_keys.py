"""Revision 0051; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0051_earlier_keys.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0051_earlier_keys.down.sql")
