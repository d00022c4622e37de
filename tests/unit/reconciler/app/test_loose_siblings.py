"""The sweep finds siblings that nobody else would look after any more."""

from __future__ import annotations

from typing import Any, cast

import pytest

from reconciler.app.driver import Driver, LocalView
from reconciler.app.project_tick import ProjectTick
from reconciler.app.work_queue import RecordKey
from reconciler.domain.broker import ids
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld, record
from tests.unit.reconciler.app.world import ALIVE, GONE


def _driver(world: EnrolledWorld, cluster_id: ids.ManagementClusterID = samples.CLUSTER) -> Driver:
    nothing: dict[tuple[str, str], dict[str, Any]] = {}
    return Driver(
        view=LocalView(records=lambda: nothing, projects=lambda: nothing),
        repository=InMemoryBrokerRepository(world.store),
        tick=world.tick_,
        teardown=world.teardown,
        project_tick=cast("ProjectTick", None),
        cluster_id=cluster_id,
    )


@pytest.fixture
async def left() -> EnrolledWorld:
    """A world whose node is gone and whose sibling a late run held again."""
    world = EnrolledWorld(raw=record())
    await world.until_ready()
    world.compose_network()
    world.delete(xr=ALIVE)
    await world.tick_until_quiet()
    world.compose_network()
    world.cluster.xr = GONE
    return world


async def test_the_sweep_lets_go_of_it(left: EnrolledWorld) -> None:
    driver = _driver(left)

    await driver.sweep_records()
    await driver.queue.settle()

    assert left.network() is None


async def test_so_does_the_end_of_its_record(left: EnrolledWorld) -> None:
    driver = _driver(left)
    metadata = left.raw["metadata"]
    driver.queue.add(RecordKey(namespace=metadata["namespace"], name=metadata["name"]))

    for _ in range(2):
        await driver.queue.settle()

    assert left.network() is None


async def test_another_clusters_is_left_to_that_one(left: EnrolledWorld) -> None:
    driver = _driver(left, ids.management_cluster_id("elsewhere"))

    await driver.sweep_records()
    await driver.queue.settle()

    assert left.network() is not None
