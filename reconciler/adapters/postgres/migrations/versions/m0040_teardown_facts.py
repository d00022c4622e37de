"""Revision 0040; its statements are in the two SQL files of the same name."""

from reconciler.adapters.postgres.migrations import script

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Apply the revision."""
    script.run("0040_teardown_facts.up.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0040_teardown_facts.down.sql")
