"""Revision 0039; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0039_driver_leases.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0039_driver_leases.down.sql")
