"""The relay's own connection when it fails, and operators who act beside the relay."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from reconciler.adapters.postgres.outbox import relay_store
from reconciler.adapters.postgres.outbox.event_desk import opened
from reconciler.adapters.postgres.outbox.relay_store import PostgresOutbox
from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryOutcome
from reconciler.domain.events.envelope import OutboxEvent
from reconciler.ports.store.outbox import OutboxError
from tests.contract.worlds import World
from tests.fakes.events import RecordingSink
from tests.integration.events.stage import CLEAR, DEADLINE_S, append, relay

pytestmark = pytest.mark.integration

REFUSED = Delivery(outcome=DeliveryOutcome.REFUSED, error="HTTP 422")
PAST = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - $2::interval, expires_at = expires_at - $2::interval
WHERE id = $1
"""
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'plexsphere-broker-relay' AND datname = current_database()
"""
TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'plexsphere-broker-relay' AND datname = current_database()
"""
ROWS = """
SELECT published_at IS NOT NULL AS published, skipped_at IS NOT NULL AS skipped, parked_at
FROM plexsphere.outbox_events ORDER BY aggregate_sequence
"""


SETTLED_AT = "SELECT published_at FROM plexsphere.outbox_events WHERE id = $1"


class SkippingSink(RecordingSink):
    """An operator skips the second event while it is being published."""

    def __init__(self, dsn: str, pool: asyncpg.Pool, second: Delivery) -> None:
        super().__init__()
        self.skipped_at: datetime | None = None
        self._dsn = dsn
        self._pool = pool
        self._second = second

    async def publish(self, event: OutboxEvent) -> Delivery:
        if event.sequence != 2:
            return await super().publish(event)
        self.tried.append(event)
        async with opened(self._dsn, actor="test") as desk:
            assert await desk.skip(event.id, reason="nobody needs it")
        self.skipped_at = await self._pool.fetchval(SETTLED_AT, event.id)
        return self._second


@pytest.mark.parametrize("second", [REFUSED, DELIVERED], ids=["refused", "delivered"])
async def test_an_event_that_is_skipped_while_it_is_tried_stays_skipped(
    dsn: str, pool: asyncpg.Pool, second: Delivery
) -> None:
    await pool.execute(CLEAR)
    await append(pool, uuid4(), 1, 2, 3)
    sink = SkippingSink(dsn, pool, second)
    async with relay(dsn, sink) as running:
        while await running.relay.once():
            pass

    assert [item.sequence for item in sink.tried] == [1, 2, 3]
    rows = [tuple(row) for row in await pool.fetch(ROWS)]
    assert rows == [(True, False, None), (True, True, None), (True, False, None)]
    settled_at = await pool.fetchval(SETTLED_AT, sink.tried[1].id)
    assert settled_at == sink.skipped_at is not None


async def test_what_expired_in_a_long_time_without_the_database_is_told(
    world: World, dsn: str, pool: asyncpg.Pool
) -> None:
    token = await world.token(await world.resource())
    outbox = PostgresOutbox(dsn)
    assert await outbox.tell_expired() == 0

    await pool.execute(TERMINATE)
    await pool.execute(PAST, token.id, timedelta(hours=5))
    told = 0
    async with asyncio.timeout(DEADLINE_S):
        while not told:
            with contextlib.suppress(OutboxError):
                told = await outbox.tell_expired()
    await outbox.close()

    assert told == 1


async def test_an_expired_token_that_somebody_holds_keeps_no_other_from_being_told(
    world: World, dsn: str, pool: asyncpg.Pool
) -> None:
    held, other = [await world.token(await world.resource(name)) for name in "ab"]
    for token in (held, other):
        await pool.execute(PAST, token.id, timedelta(hours=5))
    outbox = PostgresOutbox(dsn)
    async with pool.acquire() as holder, holder.transaction():
        await holder.execute(
            "SELECT FROM plexsphere.bootstrap_tokens WHERE id = $1 FOR UPDATE", held.id
        )

        told = await asyncio.wait_for(outbox.tell_expired(), relay_store.STATEMENT_TIMEOUT_S / 2)
        rows = await pool.fetch(
            "SELECT id FROM plexsphere.bootstrap_tokens WHERE expiry_told IS NOT NULL"
        )
    later = await outbox.tell_expired()
    await outbox.close()

    assert (told, [row["id"] for row in rows], later) == (1, [other.id], 1)


async def _claim(outbox: PostgresOutbox) -> None:
    async with outbox.claim(streams=1, depth=1):
        """Nothing is published."""


async def _tell_expired(outbox: PostgresOutbox) -> None:
    await outbox.tell_expired()


async def _backlog(outbox: PostgresOutbox) -> None:
    await outbox.backlog()


@pytest.mark.parametrize("call", [_claim, _tell_expired, _backlog])
async def test_a_connection_that_failed_is_used_no_more(
    dsn: str,
    pool: asyncpg.Pool,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[PostgresOutbox], Awaitable[None]],
) -> None:
    monkeypatch.setattr(relay_store, "STATEMENT_TIMEOUT_S", 0.5)
    outbox = PostgresOutbox(dsn)
    await _backlog(outbox)
    assert await pool.fetchval(SESSIONS) == 1
    async with pool.acquire() as holder, holder.transaction():
        await holder.execute("LOCK plexsphere.outbox_events, plexsphere.bootstrap_tokens")

        with pytest.raises(OutboxError):
            await call(outbox)

    async with asyncio.timeout(DEADLINE_S):
        while await pool.fetchval(SESSIONS):  # noqa: ASYNC110 - a server signals nothing
            await asyncio.sleep(0.02)
    await outbox.close()
