"""Revision 0044; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0044"
down_revision = "0042"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0044_retry_audit.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0044_retry_audit.down.sql")
