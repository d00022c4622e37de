"""Revision 0031; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0031_unsettled_siblings.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0031_unsettled_siblings.down.sql")
