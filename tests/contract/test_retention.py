"""What `ports.store.retention.RetentionStore` promises of its batches, on the fake and on Postgres.

Which rows of Postgres are over is not a promise of the port: `integration/postgres/test_retention`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID, uuid4

import asyncpg
import pytest

from function.contract.strategy import Phase
from reconciler.adapters.postgres.aggregates.retention import _LOCK_KEY, PostgresRetention
from reconciler.domain.events.lifecycle import on_phase
from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.retention import Remains, RetentionBatch, RetentionStore
from tests.contract import worlds
from tests.fakes.databases import migrated_database
from tests.fakes.retention import InMemoryRetention
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract

DAY: Final = timedelta(days=1)
OLD, YOUNG = 3 * DAY, DAY / 2
ALL: Final = 50
KINDS = pytest.mark.parametrize("remains", Remains)

EVENT = """
INSERT INTO plexsphere.outbox_events (id, aggregate_type, aggregate_id, aggregate_sequence,
                                      event_type, payload, occurred_at, published_at)
VALUES ($1, 'Node', $2, 1, 'identity.NodeRegistered', '{}', now() - $3::interval,
        now() - $3::interval)
"""
ORPHAN = """
INSERT INTO plexsphere.orphans
    (management_cluster_id, finding, subject, detail, found_at, gone_at)
VALUES ($1, 'record-missing', $2, 'gone', now() - interval '1 year', now() - $3::interval)
"""
AGE_TOKEN = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = now() - $2::interval - interval '1 hour', expires_at = now() - $2::interval
WHERE id = $1
"""
NEWEST = "UPDATE plexsphere.provisioned_resources SET generation = 99 WHERE id = $1"
AGE_RESOURCE = """
UPDATE plexsphere.provisioned_resources SET created_at = now() - $2::interval,
    updated_at = now() - $2::interval, deletion_requested_at = now() - $2::interval
WHERE id = $1
"""
PUBLISH = "UPDATE plexsphere.outbox_events SET published_at = now() WHERE aggregate_id = $1"
COUNT = {
    Remains.EVENTS: "SELECT count(*) FROM plexsphere.outbox_events WHERE payload = '{}'",
    Remains.TOKENS: "SELECT count(*) FROM plexsphere.bootstrap_tokens",
    Remains.RESOURCES: "SELECT count(*) FROM plexsphere.provisioned_resources "
    "WHERE status = 'Deleted'",
    Remains.ORPHANS: "SELECT count(*) FROM plexsphere.orphans",
}


class World(Protocol):
    """A store, and what is left behind in it."""

    @property
    def store(self) -> RetentionStore:
        """What is tried."""

    async def leave(self, remains: Remains, *ages: timedelta) -> None:
        """Leave rows behind that have been over for so long."""

    async def left(self, remains: Remains) -> int:
        """Count what is left of a kind."""

    def another_at_it(self) -> AbstractAsyncContextManager[None]:
        """Have another process remove for the block."""

    async def go_away(self) -> None:
        """Have the store be reached no more."""


@dataclass
class MemoryWorld:
    store: InMemoryRetention = field(default_factory=InMemoryRetention)

    async def leave(self, remains: Remains, *ages: timedelta) -> None:
        self.store.leave(remains, *ages)

    async def left(self, remains: Remains) -> int:
        return len(self.store.over.get(remains, {}))

    @asynccontextmanager
    async def another_at_it(self) -> AsyncIterator[None]:
        self.store.busy = True
        yield
        self.store.busy = False

    async def go_away(self) -> None:
        self.store.fails = 1


class RealWorld:
    def __init__(self, real: worlds.World, pool: asyncpg.Pool, dsn: str) -> None:
        self._real = real
        self._pool = pool
        self._dsn = dsn
        self.store = PostgresRetention(pool)

    async def leave(self, remains: Remains, *ages: timedelta) -> None:
        match remains:
            case Remains.EVENTS:
                for age in ages:
                    await self._pool.execute(EVENT, _made(age), uuid4(), age)
            case Remains.ORPHANS:
                for age in ages:
                    await self._pool.execute(ORPHAN, samples.CLUSTER, str(uuid4()), age)
            case Remains.TOKENS:
                resource = await self._real.resource(f"web-{uuid4()}")
                issued = [await self._real.token(resource, n) for n in range(1, len(ages) + 1)]
                for token, age in zip(issued, ages, strict=True):
                    await self._pool.execute(AGE_TOKEN, token.id, age)
                await self._pool.execute(NEWEST, resource.id)
            case Remains.RESOURCES:
                for age in ages:
                    await self._deleted(age)

    async def _deleted(self, age: timedelta) -> None:
        repository, now = self._real.repository, datetime.now(UTC)
        resource = await self._real.resource(f"web-{uuid4()}")
        asked = await repository.record_deletion_intent(resource.request_deletion(now))
        gone = replace(asked, phase=Phase.DELETED, updated_at=now)
        await repository.update(gone, event=on_phase(asked, Phase.DELETED))
        await self._pool.execute(AGE_RESOURCE, resource.id, age)
        await self._pool.execute(PUBLISH, resource.id)

    async def left(self, remains: Remains) -> int:
        return int(await self._pool.fetchval(COUNT[remains]))

    @asynccontextmanager
    async def another_at_it(self) -> AsyncIterator[None]:
        other = await asyncpg.connect(self._dsn)
        try:
            async with other.transaction():
                await other.execute("SELECT pg_advisory_xact_lock($1)", _LOCK_KEY)
                yield
        finally:
            await other.close()

    async def go_away(self) -> None:
        await self._pool.close()


def _made(age: timedelta) -> UUID:
    """Return a UUIDv7 of so long ago."""
    milliseconds = int((datetime.now(UTC) - age).timestamp() * 1000)
    return UUID(int=(milliseconds << 80) | (7 << 76) | (2 << 62) | (uuid4().int & 0xFFFF))


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    with migrated_database() as dsn:
        async with worlds.postgres_world(dsn) as real:
            pool = await asyncpg.create_pool(dsn, min_size=1, max_size=2)
            yield RealWorld(real, pool, dsn)
            await pool.close()


@KINDS
async def test_what_is_over_for_longer_than_it_is_kept_goes_and_the_rest_stays(
    world: World, remains: Remains
) -> None:
    await world.leave(remains, OLD, YOUNG, OLD)

    batch = await world.store.remove(remains, keep=DAY, after=None, limit=ALL)

    assert batch == RetentionBatch(removed=2, last=None)
    assert await world.left(remains) == 1


@KINDS
async def test_what_was_removed_is_not_found_again(world: World, remains: Remains) -> None:
    await world.leave(remains, OLD)
    await world.store.remove(remains, keep=DAY, after=None, limit=ALL)

    again = await world.store.remove(remains, keep=DAY, after=None, limit=ALL)

    assert again == RetentionBatch(removed=0, last=None)


@KINDS
async def test_a_full_batch_says_from_where_to_go_on_until_nothing_is_left(
    world: World, remains: Remains
) -> None:
    await world.leave(remains, *[OLD] * 5)

    sizes, after = [], None
    for _ in range(ALL):
        batch = await world.store.remove(remains, keep=DAY, after=after, limit=2)
        assert batch is not None
        sizes.append(batch.removed)
        after = batch.last
        if after is None:
            break

    assert sizes == [2, 2, 1]
    assert await world.left(remains) == 0


@KINDS
async def test_one_kind_goes_without_the_others(world: World, remains: Remains) -> None:
    for each in Remains:
        await world.leave(each, OLD)
    before = {each: await world.left(each) for each in Remains}

    await world.store.remove(remains, keep=DAY, after=None, limit=ALL)

    after = {each: await world.left(each) for each in Remains}
    assert after == before | {remains: 0}


@KINDS
async def test_nothing_goes_while_another_process_is_at_it(world: World, remains: Remains) -> None:
    await world.leave(remains, OLD)

    async with world.another_at_it():
        assert await world.store.remove(remains, keep=DAY, after=None, limit=ALL) is None
    assert await world.left(remains) == 1

    batch = await world.store.remove(remains, keep=DAY, after=None, limit=ALL)
    assert batch == RetentionBatch(removed=1, last=None)


async def test_a_store_that_is_away_is_told_apart(world: World) -> None:
    await world.go_away()

    with pytest.raises(StoreUnavailableError):
        await world.store.remove(Remains.EVENTS, keep=DAY, after=None, limit=ALL)
