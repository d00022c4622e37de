"""Lists, replays and skips events for operators.

Listing, following, replaying and skipping, with the audit of the last two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString
from uuid import UUID

import asyncpg

from reconciler.adapters.postgres.connection.pool import reaching
from reconciler.adapters.postgres.outbox.relay_store import connect
from reconciler.adapters.postgres.outbox.rows import EVENT, read
from reconciler.domain.events.envelope import OutboxEvent

REPLAY_MAX: Final = 10_000
"""Events of one replay: what is more is asked for again, so that a slip stays small."""
LOOK_BACK: Final = timedelta(seconds=60)
"""How far behind the newest is looked at again when following: an id is minted before its
transaction commits, and by clocks of several machines, so that a later one may be seen first."""
PAGE: Final = 1_000
FOLLOW_POLL_S: Final = 1.0

_LIST: LiteralString = (
    "SELECT "
    + EVENT
    + """, published_at, parked_at, skipped_at, last_error
FROM plexsphere.outbox_events AS event
WHERE ($1::text IS NULL OR event_type = $1) AND ($2::uuid IS NULL OR aggregate_id = $2)
  AND (NOT $3 OR parked_at IS NOT NULL) AND (NOT $4 OR published_at IS NULL)
ORDER BY id DESC
LIMIT $5
"""
)

_AFTER: LiteralString = (
    "SELECT "  # noqa: S608 - constants
    + EVENT
    + """ FROM plexsphere.outbox_events AS event
WHERE event.id > $1
ORDER BY event.id
LIMIT $2
"""
)
"""By the id, which is a UUIDv7: in the order of time, and indexed anyway."""

_CHOSEN: LiteralString = """
SELECT id FROM plexsphere.outbox_events
WHERE ($1::uuid IS NULL OR id = $1)
  AND ($2::uuid IS NULL OR (aggregate_id = $2 AND aggregate_sequence >= $3))
  AND (NOT $4 OR parked_at IS NOT NULL)
ORDER BY aggregate_id, aggregate_sequence
LIMIT $5
FOR UPDATE
"""

_REPLAY: LiteralString = """
UPDATE plexsphere.outbox_events
SET published_at = NULL, parked_at = NULL, skipped_at = NULL, available_at = NULL, attempts = 0
WHERE id = ANY($1::uuid[])
"""

_SKIP: LiteralString = """
UPDATE plexsphere.outbox_events
SET published_at = clock_timestamp(), skipped_at = clock_timestamp(), parked_at = NULL,
    available_at = NULL
WHERE id = $1 AND published_at IS NULL
RETURNING id
"""

_AUDIT: LiteralString = """
INSERT INTO plexsphere.event_audit (actor, action, reason, event_id, event_type, aggregate_id)
SELECT left($2 || ' as ' || session_user, 256), $3, $4, id, event_type, aggregate_id
FROM plexsphere.outbox_events WHERE id = ANY($1::uuid[])
ORDER BY aggregate_id, aggregate_sequence
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One event and its delivery state.

    Attributes:
        state: `waiting`, `retrying`, `parked`, `skipped` or `published`.
    """

    event: OutboxEvent
    state: str
    published_at: datetime | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The selection of events; None or False does not filter.

    Attributes:
        from_sequence: First of the aggregate's; only with an aggregate.
    """

    event: UUID | None = None
    aggregate: UUID | None = None
    from_sequence: int = 1
    parked: bool = False


class EventAdmin:
    """Operators' view of the outbox.

    Args:
        connection: Whose codec decodes jsonb.
        actor: Who asks, as the operating system names them.
    """

    def __init__(self, connection: asyncpg.Connection, *, actor: str) -> None:
        self._connection = connection
        self._actor = actor

    async def newest(
        self, choice: Choice, *, event_type: str | None, waiting: bool, limit: int
    ) -> Sequence[Listed]:
        """Return events, the newest first."""
        rows = await self._connection.fetch(
            _LIST, event_type, choice.aggregate, choice.parked, waiting, limit
        )
        return [_listed(row) for row in rows]

    async def follow(self, *, from_start: bool, wait: bool) -> AsyncIterator[OutboxEvent]:
        """Yield events as they are committed, once each.

        Args:
            from_start: Begin with the oldest that is kept, not with the next.
            wait: Go on when there is none.
        """
        cursor = UUID(int=0)
        seen: set[UUID] = set()
        if not from_start:
            cursor = _floor(await self._connection.fetchval("SELECT now()") - LOOK_BACK)
            seen = {event.id async for event in self._pages(cursor)}
        while True:
            async for event in self._pages(cursor):
                if event.id not in seen:
                    seen.add(event.id)
                    yield event
            if not wait:
                return
            # An id of a clock that is far ahead must not carry past those that come later.
            now = await self._connection.fetchval("SELECT now()")
            newest = min(max(seen, default=cursor), _floor(now))
            cursor = max(cursor, _floor(_time_of(newest) - LOOK_BACK))
            seen = {event for event in seen if event > cursor}
            await asyncio.sleep(FOLLOW_POLL_S)

    async def _pages(self, cursor: UUID) -> AsyncIterator[OutboxEvent]:
        while True:
            rows = await self._connection.fetch(_AFTER, cursor, PAGE)
            for row in rows:
                yield read(row)
            if len(rows) < PAGE:
                return
            cursor = UUID(int=rows[-1]["id"].int)

    async def replay(self, choice: Choice, *, reason: str) -> int:
        """Let events be published once more, with their ids; return how many.

        Idempotency: an event that waits already only loses its failures.
        """
        async with self._connection.transaction():
            rows = await self._connection.fetch(
                _CHOSEN,
                choice.event,
                choice.aggregate,
                choice.from_sequence,
                choice.parked,
                REPLAY_MAX,
            )
            chosen = [row["id"] for row in rows]
            await self._connection.execute(_AUDIT, chosen, self._actor, "replay", reason)
            await self._connection.execute(_REPLAY, chosen)
        return len(chosen)

    async def skip(self, event: UUID, *, reason: str) -> bool:
        """Let one event go unpublished; tell whether it was waiting."""
        async with self._connection.transaction():
            if await self._connection.fetchval(_SKIP, event) is None:
                return False
            await self._connection.execute(_AUDIT, [event], self._actor, "skip", reason)
        return True


@asynccontextmanager
async def opened(dsn: str, *, actor: str) -> AsyncIterator[EventAdmin]:
    """Open a desk on a connection of its own.

    Raises:
        StoreError: The database cannot be reached.
    """
    with reaching():
        connection = await connect(dsn, name="plexsphere-broker-events")
    try:
        yield EventAdmin(connection, actor=actor)
    finally:
        await connection.close()


def _floor(at: datetime) -> UUID:
    """Return the smallest UUIDv7 of a time."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def _time_of(event: UUID) -> datetime:
    """Return the time that a UUIDv7 was minted at."""
    return datetime.fromtimestamp((event.int >> 80) / 1000, UTC)


def _listed(row: asyncpg.Record) -> Listed:
    event = read(row)
    if row["skipped_at"] is not None:
        state = "skipped"
    elif row["published_at"] is not None:
        state = "published"
    elif row["parked_at"] is not None:
        state = "parked"
    else:
        state = "retrying" if event.attempts else "waiting"
    return Listed(
        event=event,
        state=state,
        published_at=row["published_at"],
        error=row["last_error"] or "",
    )
