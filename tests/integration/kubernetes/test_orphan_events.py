"""The Event of an orphan, on a real API server and with the reconciler's own rights."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.objects.orphan_events import KubernetesOrphanReporter
from reconciler.adapters.kubernetes.objects.writes import anybody
from reconciler.adapters.kubernetes.transport.client import Object
from reconciler.domain.teardown.orphans import MarkedObject
from tests.contract.cluster_worlds import (
    VM,
    RealWorld,
    real_world,
    reconciler_kubeconfig,
    reference,
    shared_control_plane,
)

pytestmark = pytest.mark.integration


@pytest.fixture
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RealWorld]:
    async with real_world(shared_control_plane(request.config, tmp_path_factory)) as real:
        yield real


@pytest.fixture
async def teller(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[KubernetesOrphanReporter]:
    plane = shared_control_plane(request.config, tmp_path_factory)
    client = await open_client(reconciler_kubeconfig(plane))
    yield KubernetesOrphanReporter(client, anybody)
    await client.close()


def _events(world: RealWorld) -> list[Object]:
    items: list[Object] = world.admin.get(f"{world.path}/events").body["items"]
    return items


async def test_it_is_on_the_object_and_a_second_one_writes_nothing(
    world: RealWorld, teller: KubernetesOrphanReporter
) -> None:
    vm = reference()
    uid = world.compose(vm)
    orphan = MarkedObject(
        api_version=f"{VM[0]}/v1alpha1",
        kind=VM[1],
        namespace=world.namespace,
        name=vm.name,
        record="somebodys",
        uid=uid,
    ).orphan

    await teller.tell(orphan)
    before = _events(world)
    await teller.tell(orphan)

    (event,) = _events(world)
    assert [event] == before
    assert (event["type"], event["reason"]) == ("Warning", "SubstrateWithoutRecord")
    assert event["involvedObject"] == {
        "apiVersion": f"{VM[0]}/v1alpha1",
        "kind": VM[1],
        "namespace": world.namespace,
        "name": vm.name,
        "uid": uid,
    }
    assert "created for record somebodys: nothing deletes it" in event["message"]
