"""The sweep finds siblings that nobody else would look after any more."""

from __future__ import annotations

from typing import Any, cast

import pytest

from function.contract import names
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.projects.project_reconciler import ProjectReconciler
from reconciler.app.queue.keys import RecordKey
from reconciler.domain.aggregate import ids
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import XR, EnrolledWorld, record
from tests.unit.reconciler.app.world import ALIVE, GONE


def _driver(
    world: EnrolledWorld, cluster_id: ids.ManagementClusterID = samples.CLUSTER
) -> Controller:
    nothing: dict[tuple[str, str], dict[str, Any]] = {}
    return Controller(
        view=ClusterView(records=lambda: nothing, projects=lambda: nothing),
        repository=InMemoryBrokerRepository(world.store, cluster_id),
        reconciler=world.tick_,
        teardown=world.teardown,
        project_reconciler=cast("ProjectReconciler", None),
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


@pytest.mark.parametrize("another", [{"name": "other"}, {"kind": "Other"}])
async def test_one_that_another_composite_of_its_group_took_is_deleted_by_nobody(
    left: EnrolledWorld, another: dict[str, str]
) -> None:
    taker = XR.model_copy(update={**another, "uid": "other-1"})
    left.cluster.compose(samples.NETWORK, uid="network-1", controller=taker)
    driver = _driver(left)

    await driver.sweep_records()
    await driver.queue.settle()

    live = left.network()
    assert live is not None
    assert not live.terminating


async def test_one_whose_version_is_served_no_longer_is_let_go_of_in_another(
    left: EnrolledWorld,
) -> None:
    driver = _driver(left)
    was = samples.NETWORK
    now = was.model_copy(update={"api_version": f"{names.group_of(was.api_version)}/v9"})
    live = left.network()
    assert live is not None
    left.cluster.objects = {(now.api_version, now.kind, now.name): live}
    others = (left.resource.accepted.xr, samples.SERVER, now)
    left.cluster.kinds = {(each.api_version, each.kind): True for each in others}

    await driver.sweep_records()
    await driver.queue.settle()

    assert left.cluster.objects == {}
