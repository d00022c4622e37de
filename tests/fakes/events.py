"""An outbox in memory, and a sink that records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryJudgement
from reconciler.domain.events.envelope import OutboxEvent
from reconciler.domain.events.kinds import AggregateType, IdentityEventType
from reconciler.ports.store.outbox import Backlog

START = datetime(2026, 11, 22, tzinfo=UTC)


def event(aggregate: UUID, sequence: int, **changes: Any) -> OutboxEvent:
    """Build an event of a node."""
    event_id = uuid7()
    values: dict[str, Any] = {
        "id": event_id,
        "aggregate_type": AggregateType.NODE.value,
        "aggregate_id": aggregate,
        "sequence": sequence,
        "type": IdentityEventType.NODE_REGISTERED.value,
        "occurred_at": START,
        "payload": {"EventID": str(event_id), "OccurredAt": "2026-11-22T00:00:00Z"},
    }
    return OutboxEvent(**{**values, **changes})


class RecordingSink:
    """Keeps the promises of `ports.store.outbox.EventSink`; takes what `answer` lets it take."""

    def __init__(self, answer: Callable[[OutboxEvent], Delivery] = lambda _: DELIVERED) -> None:
        self.answer = answer
        self.taken: list[OutboxEvent] = []
        self.tried: list[OutboxEvent] = []

    async def publish(self, event: OutboxEvent) -> Delivery:
        self.tried.append(event)
        await asyncio.sleep(0)
        delivery = self.answer(event)
        if delivery is DELIVERED:
            self.taken.append(event)
        return delivery

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True, kw_only=True)
class _Row:
    event: OutboxEvent
    available_at: datetime
    published: bool = False
    parked: bool = False


class InMemoryOutbox:
    """Keeps the promises of `ports.store.outbox.Outbox`, for one relay."""

    def __init__(self) -> None:
        self.now = START
        self.rows: dict[UUID, _Row] = {}

    def add(self, *events: OutboxEvent) -> None:
        for item in events:
            self.rows[item.id] = _Row(event=item, available_at=self.now)

    @property
    def waiting(self) -> Sequence[OutboxEvent]:
        return [row.event for row in self.rows.values() if not row.published]

    @property
    def parked(self) -> Sequence[OutboxEvent]:
        return [row.event for row in self.rows.values() if row.parked]

    @asynccontextmanager
    async def claim(self, *, streams: int, depth: int) -> AsyncIterator[_Claim]:
        found: dict[UUID, list[OutboxEvent]] = {}
        stopped: set[UUID] = set()
        rows = sorted(self.rows.values(), key=lambda row: row.event.sequence)
        for row in rows:
            key = row.event.aggregate_id
            if row.published or key in stopped:
                continue
            if row.parked or row.available_at > self.now:
                stopped.add(key)
                continue
            found.setdefault(key, []).append(row.event)
        chosen = [stream[:depth] for stream in found.values()]
        yield _Claim(self, chosen[:streams])

    async def tell_expired(self) -> int:
        return 0

    async def backlog(self) -> Backlog:
        return Backlog(
            waiting=len(self.waiting), parked=len(self.parked), oldest=timedelta(seconds=1)
        )


class _Claim:
    def __init__(self, outbox: InMemoryOutbox, streams: Sequence[Sequence[OutboxEvent]]) -> None:
        self._outbox = outbox
        self.streams = streams
        self.now = outbox.now

    async def settle(self, judgement: DeliveryJudgement) -> None:
        for event_id in judgement.published:
            self._outbox.rows[event_id].published = True
        for item in judgement.setbacks:
            row = self._outbox.rows[item.event_id]
            row.event = replace(row.event, attempts=item.attempts)
            row.parked = item.retry_in is None
            row.available_at = self._outbox.now + (item.retry_in or timedelta())
