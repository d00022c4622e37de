"""Revision 0029; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0029_identity.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0029_identity.down.sql")
