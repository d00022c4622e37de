"""Revision 0028; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0028_provisioning_record.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0028_provisioning_record.down.sql")
