"""Revision 0028: what the reconciler stores; its statements are in the folder of the same name."""

from typing import Final

from reconciler.adapters.postgres.migrations import script

revision = "0028"
down_revision = "0027"

PARTS: Final = (
    *("aggregate", "outbox", "fleet"),
    *("identity", "identity_events", "registration", "evidence"),
    *("audits", "driver", "compatibility"),
)
"""Files of the way up by subject, in an order in which each finds what it refers to."""


def upgrade() -> None:
    """Apply the revision."""
    for part in PARTS:
        script.run(f"0028_provisioning_reconciler/{part}.sql")


def downgrade() -> None:
    """Reverse the revision."""
    script.run("0028_provisioning_reconciler/down.sql")
