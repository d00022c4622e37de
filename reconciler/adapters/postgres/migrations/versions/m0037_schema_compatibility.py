"""Revision 0037; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0037_schema_compatibility.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0037_schema_compatibility.down.sql")
