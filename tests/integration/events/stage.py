"""Relays on a real outbox, and events that nobody else tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID, uuid4

import asyncpg
from prometheus_client import CollectorRegistry
from uuid_utils.compat import uuid7

from reconciler.adapters.events.relay_meter import PrometheusRelayMeter
from reconciler.adapters.postgres.outbox.relay_store import PostgresOutbox
from reconciler.app.outbox.relay import Relay, RelayPorts
from reconciler.domain.events.kinds import AggregateType, IdentityEventType
from reconciler.ports.store.outbox import EventSink

DEADLINE_S = 60.0

APPEND: LiteralString = """
INSERT INTO plexsphere.outbox_events
    (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
VALUES ($1, $2, $3, $4, $5, $6, now())
"""
CLEAR: LiteralString = "DELETE FROM plexsphere.outbox_events"
WAITING: LiteralString = "SELECT count(*) FROM plexsphere.outbox_events WHERE published_at IS NULL"


async def append(
    connection: asyncpg.Connection | asyncpg.Pool, aggregate: UUID, *sequences: int
) -> Sequence[UUID]:
    """Append events of one aggregate with these numbers; returns their ids."""
    rows = [
        (
            uuid7(),
            AggregateType.NODE.value,
            aggregate,
            number,
            IdentityEventType.NODE_REGISTERED.value,
            {"number": number},
        )
        for number in sequences
    ]
    await connection.executemany(APPEND, rows)
    return [row[0] for row in rows]


async def fill(pool: asyncpg.Pool, *, aggregates: int, each: int) -> Sequence[UUID]:
    """Append events of several aggregates; returns those."""
    found = [uuid4() for _ in range(aggregates)]
    async with pool.acquire() as connection, connection.transaction():
        for aggregate in found:
            await append(connection, aggregate, *range(1, each + 1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A relay at work."""

    relay: Relay
    outbox: PostgresOutbox


@asynccontextmanager
async def relay(dsn: str, sink: EventSink, *, batch: int = 512) -> AsyncIterator[Running]:
    """Make a relay; it is not run."""
    outbox = PostgresOutbox(dsn)
    meter = PrometheusRelayMeter(CollectorRegistry())
    loop = asyncio.get_running_loop()
    ports = RelayPorts(outbox=outbox, sink=sink, meter=meter, monotonic=loop.time)
    try:
        yield Running(relay=Relay(ports, batch=batch), outbox=outbox)
    finally:
        await outbox.close()


@asynccontextmanager
async def at_work(dsn: str, sink: EventSink, *, batch: int = 512) -> AsyncIterator[Running]:
    """Run a relay for the block."""
    async with relay(dsn, sink, batch=batch) as running:
        task = asyncio.create_task(running.relay.run())
        try:
            yield running
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool], *, within_s: float = DEADLINE_S) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for signals nothing
            await asyncio.sleep(0.01)


async def drained(pool: asyncpg.Pool, *, within_s: float = DEADLINE_S) -> None:
    """Wait until nothing waits."""
    async with asyncio.timeout(within_s):
        while await pool.fetchval(WAITING):  # noqa: ASYNC110 - a table signals nothing
            await asyncio.sleep(0.02)
