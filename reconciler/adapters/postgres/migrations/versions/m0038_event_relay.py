"""Revision 0038; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0038_event_relay.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0038_event_relay.down.sql")
