"""Revision 0035; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0035_recreation.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0035_recreation.down.sql")
