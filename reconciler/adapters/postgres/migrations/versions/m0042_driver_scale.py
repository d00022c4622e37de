"""Revision 0042; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0042_driver_scale.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0042_driver_scale.down.sql")
