"""Selects the next events of the outbox and parses their rows.

The statements that choose waiting events, and hydration.

What waits is read in the order of an index (`outbox_relay.connect`), however much was published.
"""

from __future__ import annotations

from typing import LiteralString

import asyncpg

from reconciler.domain.events.envelope import OutboxEvent

EVENT: LiteralString = """
event.id, event.aggregate_type, event.aggregate_id, event.aggregate_sequence, event.event_type,
event.occurred_at, event.payload, event.attempts
"""

_FIRST: LiteralString = (
    "SELECT "  # noqa: S608 - constants
    + EVENT
    + """, now() AS now FROM plexsphere.outbox_events AS event
WHERE published_at IS NULL AND parked_at IS NULL
  AND NOT EXISTS (
    SELECT FROM plexsphere.outbox_events AS earlier
    WHERE earlier.aggregate_id = event.aggregate_id AND earlier.published_at IS NULL
      AND earlier.aggregate_sequence < event.aggregate_sequence
  )
"""
)
_NEXT: LiteralString = " ORDER BY sequence LIMIT $1 FOR UPDATE SKIP LOCKED"
HEADS: LiteralString = _FIRST + "AND (available_at IS NULL OR available_at <= now())" + _NEXT
"""The first that waits of each aggregate. One that another relay published meanwhile is judged
again once its lock is free, and falls out."""
FRESH_HEADS: LiteralString = _FIRST + "AND available_at IS NULL" + _NEXT
RETRIED_HEADS: LiteralString = _FIRST + "AND available_at <= now()" + _NEXT
"""These two while the sink takes nothing: however many it will never take, they are behind what
was not tried yet."""

FOLLOWING: LiteralString = (
    "SELECT "  # noqa: S608 - constants
    + EVENT
    + """ FROM unnest($1::uuid[], $2::bigint[]) AS head (aggregate_id, aggregate_sequence)
CROSS JOIN LATERAL (
    SELECT * FROM plexsphere.outbox_events AS later
    WHERE later.aggregate_id = head.aggregate_id AND later.published_at IS NULL
      AND later.aggregate_sequence > head.aggregate_sequence
    ORDER BY later.aggregate_sequence
    LIMIT $3
) AS event
WHERE event.parked_at IS NULL AND (event.available_at IS NULL OR event.available_at <= now())
ORDER BY event.aggregate_id, event.aggregate_sequence
"""
)
"""Not locked: who holds the first has them all."""


def read(row: asyncpg.Record) -> OutboxEvent:
    """Hydrate a row of the `EVENT` columns."""
    return OutboxEvent(
        id=row["id"],
        aggregate_type=row["aggregate_type"],
        aggregate_id=row["aggregate_id"],
        sequence=row["aggregate_sequence"],
        type=row["event_type"],
        occurred_at=row["occurred_at"],
        payload=row["payload"],
        attempts=row["attempts"],
    )
