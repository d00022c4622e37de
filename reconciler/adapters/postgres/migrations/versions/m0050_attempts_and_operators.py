"""Revision 0050; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0050_attempts_and_operators.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0050_attempts_and_operators.down.sql")
