"""Revision 0030; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0030_broker_audit.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0030_broker_audit.down.sql")
