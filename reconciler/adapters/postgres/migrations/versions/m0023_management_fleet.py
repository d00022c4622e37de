"""Revision 0023; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0023"
down_revision = "0001"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0023_management_fleet.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0023_management_fleet.down.sql")
