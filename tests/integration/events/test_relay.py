"""The relay on a real outbox: order, at least once, and who is to blame."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from reconciler.adapters.postgres.outbox import relay_store, rows
from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryOutcome
from reconciler.domain.events.envelope import OutboxEvent
from reconciler.ports.store.outbox import OutboxError
from tests.fakes.events import RecordingSink
from tests.integration.events.stage import (
    CLEAR,
    DEADLINE_S,
    WAITING,
    append,
    at_work,
    drained,
    fill,
    relay,
    until,
)

pytestmark = pytest.mark.integration

FAILED = Delivery(outcome=DeliveryOutcome.FAILED, error="HTTP 503")
REFUSED = Delivery(outcome=DeliveryOutcome.REFUSED, error="HTTP 422")
RELAYS = 4
CRASHES = 12


@pytest.fixture(autouse=True)
async def _nothing_waits(pool: asyncpg.Pool) -> None:
    await pool.execute(CLEAR)


class CrashError(Exception):
    """What a killed process would have done next, it does not."""


class Consumer:
    """Dedupes by id, as consumers must, and remembers in which order it got each aggregate."""

    def __init__(self) -> None:
        self.seen: dict[UUID, list[int]] = defaultdict(list)
        self.ids: set[UUID] = set()
        self.deliveries = 0

    def take(self, event: OutboxEvent) -> None:
        self.deliveries += 1
        if event.id not in self.ids:
            self.ids.add(event.id)
            self.seen[event.aggregate_id].append(event.sequence)

    def is_whole(self, aggregates: Sequence[UUID], each: int) -> bool:
        return all(len(self.seen[aggregate]) == each for aggregate in aggregates)


class CrashingSink(RecordingSink):
    """Hands over, and then the process dies now and then, before anything is put away."""

    def __init__(self, consumer: Consumer, *, crashes: int, seed: int) -> None:
        super().__init__()
        self._consumer = consumer
        self._random = random.Random(seed)  # noqa: S311 - a fault's time
        self._left = crashes

    async def publish(self, event: OutboxEvent) -> Delivery:
        await asyncio.sleep(0)
        self._consumer.take(event)
        if self._left and self._random.random() < 0.02:
            self._left -= 1
            raise CrashError
        return DELIVERED


async def _relaying_with_crashes(dsn: str, consumer: Consumer, seed: int) -> None:
    sink = CrashingSink(consumer, crashes=CRASHES // RELAYS, seed=seed)
    while True:
        async with relay(dsn, sink, batch=128) as running:
            try:
                while True:
                    if not await running.relay.once():
                        await asyncio.sleep(0.01)
            except CrashError:
                continue


async def test_four_relays_that_crash_lose_nothing_and_keep_every_order(
    dsn: str, pool: asyncpg.Pool
) -> None:
    """Faults 31 and 33: killed between publishing and putting away."""
    aggregates = await fill(pool, aggregates=200, each=10)
    consumer = Consumer()
    relays = [
        asyncio.create_task(_relaying_with_crashes(dsn, consumer, seed)) for seed in range(RELAYS)
    ]
    try:
        await drained(pool)
    finally:
        for task in relays:
            task.cancel()
        ended = await asyncio.gather(*relays, return_exceptions=True)

    assert {type(item) for item in ended} == {asyncio.CancelledError}
    assert all(consumer.seen[each] == list(range(1, 11)) for each in aggregates)
    assert consumer.deliveries > 2000, "a crash between publishing and putting away repeats"


async def test_an_event_whose_transaction_commits_late_is_not_passed_over(
    dsn: str, pool: asyncpg.Pool
) -> None:
    """Fault 33: the order of a sequence is not the order of commits."""
    sink = RecordingSink()
    early, late = uuid4(), uuid4()
    async with relay(dsn, sink) as running, pool.acquire() as slow, pool.acquire() as fast:
        transaction = slow.transaction()
        await transaction.start()
        await append(slow, late, 1)
        await append(fast, early, 1)
        await running.relay.once()
        assert [item.aggregate_id for item in sink.taken] == [early]

        await transaction.commit()
        await running.relay.once()

    assert [item.aggregate_id for item in sink.taken] == [early, late]


async def test_a_rolled_back_transaction_tells_nothing(dsn: str, pool: asyncpg.Pool) -> None:
    sink = RecordingSink()
    async with relay(dsn, sink) as running, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await append(connection, uuid4(), 1)
        await transaction.rollback()

        await running.relay.once()

    assert not sink.tried


async def test_what_one_relay_holds_no_other_touches(dsn: str, pool: asyncpg.Pool) -> None:
    aggregate = uuid4()
    await append(pool, aggregate, 1, 2, 3)
    async with (
        relay(dsn, RecordingSink()) as one,
        relay(dsn, RecordingSink()) as two,
        one.outbox.claim(streams=1, depth=1) as mine,
        two.outbox.claim(streams=10, depth=10) as theirs,
    ):
        assert [item.sequence for stream in mine.streams for item in stream] == [1]
        assert theirs.streams == ()


async def test_a_consumer_that_comes_back_gets_everything_in_order(
    dsn: str, pool: asyncpg.Pool
) -> None:
    """Fault 30 and 32: a backlog drains in order and nothing was parked."""
    aggregates = await fill(pool, aggregates=20, each=5)
    consumer = Consumer()
    sink = RecordingSink(lambda _: FAILED)
    async with at_work(dsn, sink):
        await until(lambda: len(sink.tried) >= 20)

        def take(event: OutboxEvent) -> Delivery:
            consumer.take(event)
            return DELIVERED

        sink.answer = take
        await drained(pool)

    assert all(consumer.seen[each] == [1, 2, 3, 4, 5] for each in aggregates)


async def test_what_was_never_tried_goes_before_all_that_a_sink_did_not_take(
    dsn: str, pool: asyncpg.Pool
) -> None:
    ill = set(await fill(pool, aggregates=200, each=1))
    sink = RecordingSink(lambda item: FAILED if item.aggregate_id in ill else DELIVERED)
    async with relay(dsn, sink) as running:
        while {item.aggregate_id for item in sink.tried} != ill:
            await running.relay.once()
        await pool.execute("UPDATE plexsphere.outbox_events SET available_at = now()")
        well = uuid4()
        await append(pool, well, 1)

        await running.relay.once()

    assert [item.aggregate_id for item in sink.taken] == [well]


@pytest.mark.parametrize("ill", [8, 65])
async def test_events_that_are_never_taken_hold_back_no_other_aggregate(
    dsn: str, pool: asyncpg.Pool, ill: int
) -> None:
    poisoned = set(await fill(pool, aggregates=ill, each=1))
    sink = RecordingSink(lambda item: FAILED if item.aggregate_id in poisoned else DELIVERED)
    async with at_work(dsn, sink) as running:
        await until(lambda: {item.aggregate_id for item in sink.tried} == poisoned)
        well = await fill(pool, aggregates=20, each=3)
        running.relay.wake()
        async with asyncio.timeout(DEADLINE_S):
            while await pool.fetchval(WAITING) > ill:  # noqa: ASYNC110 - a table signals nothing
                await asyncio.sleep(0.02)
        waiting = await pool.fetch(
            "SELECT aggregate_id FROM plexsphere.outbox_events WHERE published_at IS NULL"
        )

    assert all(
        [item.sequence for item in sink.taken if item.aggregate_id == each] == [1, 2, 3]
        for each in well
    )
    assert {row["aggregate_id"] for row in waiting} == poisoned


async def test_a_poisonous_event_parks_its_aggregate_alone(dsn: str, pool: asyncpg.Pool) -> None:
    ill, well = uuid4(), uuid4()
    await append(pool, ill, 1, 2, 3)
    await append(pool, well, 1, 2, 3)
    sink = RecordingSink(
        lambda item: REFUSED if (item.aggregate_id, item.sequence) == (ill, 2) else DELIVERED
    )
    async with relay(dsn, sink) as running:
        while await running.relay.once():
            pass
        backlog = await running.outbox.backlog()

    assert [item.sequence for item in sink.taken if item.aggregate_id == well] == [1, 2, 3]
    assert [item.sequence for item in sink.taken if item.aggregate_id == ill] == [1]
    assert (backlog.waiting, backlog.parked, backlog.oldest.total_seconds()) == (2, 1, 0)
    row = await pool.fetchrow(
        "SELECT attempts, last_error, parked_at FROM plexsphere.outbox_events "
        "WHERE aggregate_id = $1 AND aggregate_sequence = 2",
        ill,
    )
    assert (row["attempts"], row["last_error"]) == (1, "HTTP 422")
    assert row["parked_at"] is not None


@pytest.mark.parametrize("sink_down", [False, True])
async def test_nothing_behind_a_parked_event_is_told_though_one_before_it_waits_again(
    dsn: str, pool: asyncpg.Pool, *, sink_down: bool
) -> None:
    aggregate = uuid4()
    await append(pool, aggregate, 1, 2, 3)
    await pool.execute(
        "UPDATE plexsphere.outbox_events SET parked_at = now() WHERE aggregate_sequence = 2"
    )
    answers = iter([FAILED] if sink_down else [])
    sink = RecordingSink(lambda _: next(answers, DELIVERED))
    async with relay(dsn, sink) as running:
        await running.relay.once()
        await pool.execute("UPDATE plexsphere.outbox_events SET available_at = NULL")
        while await running.relay.once():
            pass

    assert [item.sequence for item in sink.taken] == [1]
    assert await pool.fetchval(WAITING) == 2


async def test_a_counted_failure_waits_for_its_hour_and_so_does_what_follows(
    dsn: str, pool: asyncpg.Pool
) -> None:
    ill = uuid4()
    await append(pool, ill, 1, 2)
    await append(pool, uuid4(), 1)
    sink = RecordingSink(lambda item: FAILED if item.aggregate_id == ill else DELIVERED)
    async with relay(dsn, sink) as running:
        while await running.relay.once():
            pass
        sink.answer = lambda _: DELIVERED
        await running.relay.once()
        assert len(sink.tried) == 2, "its second has not passed"

        await pool.execute("UPDATE plexsphere.outbox_events SET available_at = now()")
        await running.relay.once()

    assert [item.sequence for item in sink.taken if item.aggregate_id == ill] == [1, 2]


async def test_a_store_that_drops_the_connection_is_reconnected(
    dsn: str, pool: asyncpg.Pool
) -> None:
    sink = RecordingSink()
    async with at_work(dsn, sink) as running:
        await append(pool, uuid4(), 1)
        running.relay.wake()
        await until(lambda: len(sink.taken) == 1)

        await pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'plexsphere-broker-relay' AND datname = current_database()"
        )
        await append(pool, uuid4(), 1)
        await until(lambda: len(sink.taken) >= 2)


async def test_a_connection_lost_in_a_batch_frees_what_it_held(
    dsn: str, pool: asyncpg.Pool
) -> None:
    await append(pool, uuid4(), 1)
    async with relay(dsn, RecordingSink()) as one, relay(dsn, RecordingSink()) as two:
        with pytest.raises(OutboxError):
            async with one.outbox.claim(streams=1, depth=1):
                await pool.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                    "application_name = 'plexsphere-broker-relay' AND state LIKE 'idle in%'"
                    " AND datname = current_database()"
                )
        await two.relay.once()

    assert await pool.fetchval(WAITING) == 0


async def test_a_long_outbox_is_read_by_its_indexes(dsn: str, pool: asyncpg.Pool) -> None:
    """What was published is not read again, however much it is."""
    connection = await relay_store.connect(dsn, name="test")
    try:
        statements: tuple[tuple[str, list[Any]], ...] = (
            (rows.HEADS, [10]),
            (rows.FRESH_HEADS, [10]),
            (rows.RETRIED_HEADS, [10]),
            (rows.FOLLOWING, [[uuid4()], [1], 8]),
            (relay_store.BACKLOG, []),
        )
        for statement, values in statements:
            plan = await connection.fetch(f"EXPLAIN {statement}", *values)
            text = "\n".join(row[0] for row in plan)
            assert "Seq Scan" not in text, text
            assert "Bitmap" not in text, text
            assert "outbox_events_pkey" not in text, text
    finally:
        await connection.close()
