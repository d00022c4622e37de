"""What a record asks for counts for its own aggregate alone, however late it is seen (fault 15)."""

from __future__ import annotations

import copy

import pytest

from function.contract.strategy import Phase
from reconciler.domain.aggregate.errors import StaleAggregateError
from tests.unit.reconciler.app.world import ALIVE, RESTART, World


async def test_a_record_whose_deletion_was_asked_for_is_not_begun_anew_by_who_sees_it_late() -> (
    None
):
    world = World()
    await world.until_ready()
    late = copy.deepcopy(world.raw)
    world.delete(xr=ALIVE)
    await world.tick()
    metadata = world.raw["metadata"]
    world.cluster.records[metadata["namespace"], metadata["name"]] = world.raw

    with pytest.raises(StaleAggregateError):
        await world.tick_.run(late)

    assert len(world.store.resources) == 1


async def test_a_record_that_stands_again_is_begun_anew() -> None:
    world = World()
    await world.until_ready()
    back = copy.deepcopy(world.raw)
    world.delete(xr=ALIVE)
    await world.tick()
    world.store.clock.advance(RESTART)

    await world.tick_.run(back)

    assert len(world.store.resources) == 2


async def test_a_predecessor_that_a_cache_still_shows_does_not_take_its_successors_place() -> None:
    world = World()
    await world.until_ready()
    predecessor = copy.deepcopy(world.raw)
    world.raw["metadata"]["uid"] = "record-2"
    await world.tick()
    metadata = world.raw["metadata"]
    world.cluster.records[metadata["namespace"], metadata["name"]] = world.raw

    with pytest.raises(StaleAggregateError):
        await world.tick_.run(predecessor)

    assert world.resource.record.uid == "record-2"


async def test_a_terminating_predecessor_that_a_cache_still_shows_takes_no_node_out() -> None:
    world = World()
    await world.until_ready()
    predecessor = copy.deepcopy(world.raw)
    predecessor["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    world.raw["metadata"]["uid"] = "record-2"
    await world.tick()
    metadata = world.raw["metadata"]
    world.cluster.records[metadata["namespace"], metadata["name"]] = world.raw

    with pytest.raises(StaleAggregateError):
        await world.tick_.run(predecessor)

    assert world.resource.deletion_requested_at is None


async def test_nor_is_its_predecessor_begun_anew_while_its_successor_goes() -> None:
    world = World()
    await world.until_ready()
    predecessor = copy.deepcopy(world.raw)
    world.raw["metadata"]["uid"] = "record-2"
    await world.tick()
    world.delete(xr=ALIVE)
    await world.tick()
    metadata = world.raw["metadata"]
    world.cluster.records[metadata["namespace"], metadata["name"]] = world.raw

    with pytest.raises(StaleAggregateError):
        await world.tick_.run(predecessor)

    assert len(world.store.resources) == 1


async def test_a_successor_that_nobody_saw_living_keeps_its_finalizer_until_all_is_gone() -> None:
    world = World()
    await world.until_ready()
    world.raw["metadata"]["uid"] = "record-2"
    world.delete(xr=ALIVE)

    for _ in range(20):
        await world.tick()
        assert world.finalizer or not world.cluster.objects
        world.react()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
