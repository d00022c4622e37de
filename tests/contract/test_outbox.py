"""What `ports.store.outbox.Outbox` promises a relay, on the fake and on Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.adapters.postgres.outbox.relay_store import PostgresOutbox
from reconciler.domain.events.delivery import DeliveryJudgement, Setback
from reconciler.ports.store.outbox import Outbox
from tests.fakes.databases import migrated_database
from tests.fakes.events import InMemoryOutbox, event
from tests.integration.events.stage import append

pytestmark = pytest.mark.contract

ALL = 9
LATER = timedelta(hours=1)
NOTHING = DeliveryJudgement(published=(), setbacks=(), sink_down=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """An outbox, and how events of one aggregate, of these numbers, come into it."""

    outbox: Outbox
    add: Callable[[UUID, Iterable[int]], Awaitable[None]]


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        memory = InMemoryOutbox()

        async def remember(aggregate: UUID, numbers: Iterable[int]) -> None:
            memory.add(*(event(aggregate, number) for number in numbers))

        yield World(outbox=memory, add=remember)
        return
    with migrated_database() as dsn:
        pool, outbox = await open_pool(dsn), PostgresOutbox(dsn)

        async def insert(aggregate: UUID, numbers: Iterable[int]) -> None:
            await append(pool, aggregate, *numbers)

        yield World(outbox=outbox, add=insert)
        await outbox.close()
        await pool.close()


async def _waits(world: World, *, streams: int = ALL, depth: int = ALL) -> dict[UUID, list[int]]:
    """Return the numbers that a claim gives, by aggregate; nothing becomes of them."""
    async with world.outbox.claim(streams=streams, depth=depth) as batch:
        found = {each[0].aggregate_id: [item.sequence for item in each] for each in batch.streams}
        await batch.settle(NOTHING)
    return found


async def _settle(
    world: World, *, published: Iterable[int] = (), back: Iterable[int] = (),
    retry_in: timedelta | None = None,
) -> None:  # fmt: skip
    """Claim everything and store what became of events of these numbers."""
    async with world.outbox.claim(streams=ALL, depth=ALL) as batch:
        items = [item for each in batch.streams for item in each]
        setbacks = tuple(
            Setback(event_id=item.id, attempts=1, retry_in=retry_in, error="HTTP 422")
            for item in items
            if item.sequence in set(back)
        )
        told = tuple(item.id for item in items if item.sequence in set(published))
        await batch.settle(DeliveryJudgement(published=told, setbacks=setbacks, sink_down=False))


async def test_the_events_of_an_aggregate_come_in_order(world: World) -> None:
    one, two = uuid4(), uuid4()
    await world.add(one, (1, 2, 3))
    await world.add(two, (1,))

    assert await _waits(world) == {one: [1, 2, 3], two: [1]}


async def test_no_more_come_than_were_asked_for(world: World) -> None:
    for _ in range(3):
        await world.add(uuid4(), (1, 2, 3))

    found = await _waits(world, streams=2, depth=2)

    assert list(found.values()) == [[1, 2], [1, 2]]


async def test_what_is_published_comes_no_more_and_the_rest_does(world: World) -> None:
    one = uuid4()
    await world.add(one, (1, 2, 3))

    await _settle(world, published=(1, 2))

    assert await _waits(world) == {one: [3]}
    assert (await world.outbox.backlog()).waiting == 1


async def test_what_nothing_is_said_of_stays_as_it_was(world: World) -> None:
    one = uuid4()
    await world.add(one, (1, 2))

    assert await _waits(world) == await _waits(world) == {one: [1, 2]}


async def test_a_parked_event_stops_its_own_aggregate(world: World) -> None:
    one, two = uuid4(), uuid4()
    await world.add(one, (1, 2, 3))
    await world.add(two, (1, 4))

    await _settle(world, published=(1,), back=(2,), retry_in=None)

    assert await _waits(world) == {two: [4]}
    backlog = await world.outbox.backlog()
    assert (backlog.waiting, backlog.parked) == (3, 1)


async def test_an_event_that_is_tried_later_holds_back_what_is_behind_it(world: World) -> None:
    one, two = uuid4(), uuid4()
    await world.add(one, (1, 2))
    await world.add(two, (3,))

    await _settle(world, back=(1,), retry_in=LATER)

    assert await _waits(world) == {two: [3]}
    backlog = await world.outbox.backlog()
    assert (backlog.waiting, backlog.parked) == (3, 0)


async def test_its_attempts_are_counted(world: World) -> None:
    await world.add(uuid4(), (1,))

    await _settle(world, back=(1,), retry_in=timedelta())

    async with world.outbox.claim(streams=ALL, depth=ALL) as batch:
        assert [item.attempts for each in batch.streams for item in each] == [1]
        await batch.settle(NOTHING)


async def test_an_empty_one_has_nothing_to_give_or_to_tell(world: World) -> None:
    assert await _waits(world) == {}
    assert await world.outbox.tell_expired() == 0
    assert (await world.outbox.backlog()).waiting == 0
