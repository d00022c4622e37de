"""A cache that still shows a record's predecessor does the successor no harm."""

from __future__ import annotations

import copy

import pytest

from reconciler.domain.aggregate.errors import StaleAggregateError
from tests.unit.reconciler.app.world import ALIVE, World


async def _succeeded() -> tuple[World, str]:
    """Return a world whose record was made anew, while the cache shows the old one."""
    world = World()
    await world.until_ready()
    successor = copy.deepcopy(world.raw)
    successor["metadata"]["uid"] = "record-2"
    successor.pop("status", None)
    metadata = successor["metadata"]
    world.cluster.records[metadata["namespace"], metadata["name"]] = successor
    world.cluster.journal.clear()
    return world, str(successor)


async def _tick(world: World) -> None:
    for _ in range(5):
        try:
            await world.tick()
        except StaleAggregateError:
            continue


@pytest.mark.parametrize("going", [True, False], ids=["terminating", "living"])
async def test_the_predecessors_tick_changes_nothing_of_the_successor(going: bool) -> None:
    world, before = await _succeeded()
    if going:
        world.delete(xr=ALIVE)
    world.raw["status"].pop("phase")

    await _tick(world)

    metadata = world.raw["metadata"]
    assert str(world.cluster.records[metadata["namespace"], metadata["name"]]) == before
