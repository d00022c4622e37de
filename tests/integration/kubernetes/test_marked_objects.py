"""Listing what carries the record label, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from function.contract import names
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.objects import marked_objects
from reconciler.adapters.kubernetes.objects.marked_objects import KubernetesMarkedObjects
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from tests.contract.cluster_worlds import (
    VM,
    RealWorld,
    real_world,
    reconciler_kubeconfig,
    reference,
    shared_control_plane,
)

pytestmark = pytest.mark.integration

KIND = (f"{VM[0]}/v1alpha1", VM[1])


@pytest.fixture
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RealWorld]:
    async with real_world(shared_control_plane(request.config, tmp_path_factory)) as real:
        yield real


@pytest.fixture
async def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[KubernetesClient]:
    plane = shared_control_plane(request.config, tmp_path_factory)
    opened = await open_client(reconciler_kubeconfig(plane))
    yield opened
    await opened.close()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked_objects, "PAGE", 2)


def _mark(world: RealWorld, name: str) -> None:
    vm = reference().model_copy(update={"name": name})
    world.compose(vm)
    labels = {"metadata": {"labels": {names.LABEL_RECORD: f"{name}-record"}}}
    assert world.admin.patch(f"{world.all(VM)}/{name}", labels).ok


@pytest.mark.usefixtures("small_pages")
async def test_marked_objects_are_found_over_all_pages(
    world: RealWorld, client: KubernetesClient
) -> None:
    wanted = {f"marked-{number}" for number in range(5)}
    for name in wanted:
        _mark(world, name)
    world.compose(reference().model_copy(update={"name": "plain"}))

    found = await KubernetesMarkedObjects(client).list_marked(KIND)

    ours = {item.name: item.record for item in found if item.namespace == world.namespace}
    assert ours == {name: f"{name}-record" for name in wanted}
