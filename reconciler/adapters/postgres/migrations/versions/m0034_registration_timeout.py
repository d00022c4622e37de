"""Revision 0034; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0034_registration_timeout.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0034_registration_timeout.down.sql")
