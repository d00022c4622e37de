"""Revision 0047; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0047"
down_revision = "0044"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0047_provisioning_deadline.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0047_provisioning_deadline.down.sql")
