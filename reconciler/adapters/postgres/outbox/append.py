"""Appending lifecycle events to the outbox, once each.

The guard row, the count and the event row. Called inside the transaction of the change that
the event tells of, with the aggregate's row locked, which is what makes the sequence
gapless.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, LiteralString

import asyncpg
from uuid_utils.compat import uuid7

from reconciler.domain.aggregate.ids import ProvisionedResourceID
from reconciler.domain.events.lifecycle import LifecycleEvent

AGGREGATE_TYPE: Final = "ProvisionedResource"

_CLAIM: LiteralString = """
INSERT INTO plexsphere.provisioned_resource_outbox_token
    (provisioned_resource_id, event_type, generation)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
RETURNING true
"""

_APPEND: LiteralString = """
WITH counted AS (
    UPDATE plexsphere.provisioned_resources
    SET events = 1 + greatest(events, (
        SELECT max(aggregate_sequence) FROM plexsphere.outbox_events WHERE aggregate_id = $3
    ))
    WHERE id = $3
    RETURNING events
)
INSERT INTO plexsphere.outbox_events
    (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
SELECT $1, $2, $3, events, $4, $5::jsonb || plexsphere.names_of($3), $6 FROM counted
"""
"""The count outlives the events, which retention removes; the events outlive the count where the
schema went below 0028 and came up again, and a record brought its aggregate back."""


async def append_once(
    connection: asyncpg.Connection,
    *,
    aggregate_id: ProvisionedResourceID,
    event: LifecycleEvent,
    occurred_at: datetime,
) -> None:
    """Append an event unless its (aggregate, type, generation) was appended before.

    The payload is the event's own fields with `EventID` and `OccurredAt` (RFC 3339, UTC), and
    the names that its ids stand for.
    """
    claimed = await connection.fetchval(_CLAIM, aggregate_id, event.type.value, event.generation)
    if not claimed:
        return
    event_id = uuid7()
    payload = {
        "EventID": str(event_id),
        "OccurredAt": occurred_at.isoformat().replace("+00:00", "Z"),
        **event.data,
    }
    await connection.execute(
        _APPEND, event_id, AGGREGATE_TYPE, aggregate_id, event.type.value, payload, occurred_at
    )
