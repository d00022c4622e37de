"""Revision 0027; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0027_provisioning_broker_deletion.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0027_provisioning_broker_deletion.down.sql")
