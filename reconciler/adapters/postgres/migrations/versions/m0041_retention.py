"""Revision 0041; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0041_retention.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0041_retention.down.sql")
