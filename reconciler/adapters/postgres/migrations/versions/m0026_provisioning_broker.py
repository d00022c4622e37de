"""Revision 0026; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0026"
down_revision = "0023"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0026_provisioning_broker.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0026_provisioning_broker.down.sql")
