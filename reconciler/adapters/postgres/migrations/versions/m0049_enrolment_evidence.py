"""Revision 0049; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0049"
down_revision = "0047"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0049_enrolment_evidence.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0049_enrolment_evidence.down.sql")
