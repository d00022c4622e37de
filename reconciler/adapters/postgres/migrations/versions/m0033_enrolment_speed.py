"""Revision 0033; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0033_enrolment_speed.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0033_enrolment_speed.down.sql")
