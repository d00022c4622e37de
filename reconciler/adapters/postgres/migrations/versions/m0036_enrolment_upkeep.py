"""Revision 0036; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0036_enrolment_upkeep.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0036_enrolment_upkeep.down.sql")
