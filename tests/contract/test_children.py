"""What a live GET tells of an object that goes, and of what a composite is made of, twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from function.contract.record import SubstrateReference
from tests.contract.cluster_worlds import (
    FOREIGN_FINALIZER,
    VM,
    MemoryWorld,
    RealWorld,
    real_world,
    reference,
    shared_control_plane,
)

CHILDREN = (
    SubstrateReference(api_version="cloud.test/v1", kind="Machine", name="vm"),
    SubstrateReference(api_version="cloud.test/v1", kind="Disk", name="vm"),
)


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[MemoryWorld | RealWorld]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    plane = shared_control_plane(request.config, tmp_path_factory)
    async with real_world(plane) as real:
        yield real


def _compose(
    world: MemoryWorld | RealWorld,
    composite: SubstrateReference,
    children: Sequence[SubstrateReference],
    *,
    nameless: bool = False,
) -> None:
    """Say of a composite what it composes, as Crossplane does."""
    if isinstance(world, MemoryWorld):
        key = (composite.api_version, composite.kind, composite.name)
        world.fake.objects[key] = replace(world.fake.objects[key], below=tuple(children))
        return
    listed: list[dict[str, Any]] = [child.model_dump(by_alias=True) for child in children]
    if nameless:
        listed.insert(0, {"apiVersion": "cloud.test/v1", "kind": "Disk"})
    spec = {"crossplane": {"resourceRefs": listed}}
    answer = world.admin.patch(f"{world.all(VM)}/{composite.name}", {"spec": spec})
    assert answer.ok, answer.message


def _hang(world: MemoryWorld | RealWorld, composite: SubstrateReference) -> None:
    """Delete an object that a finalizer holds."""
    if isinstance(world, MemoryWorld):
        key = (composite.api_version, composite.kind, composite.name)
        world.fake.objects[key] = replace(
            world.fake.objects[key],
            terminating=True,
            finalizers=(FOREIGN_FINALIZER,),
            deleting_since=datetime.now(UTC),
        )
        return
    path = f"{world.all(VM)}/{composite.name}"
    held = {"metadata": {"finalizers": [FOREIGN_FINALIZER]}}
    assert world.admin.patch(path, held).ok
    assert world.admin.delete(path).ok


class TestChildren:
    async def test_a_composite_tells_what_it_composes(self, world: MemoryWorld | RealWorld) -> None:
        composite = reference()
        world.compose(composite)
        _compose(world, composite, CHILDREN)

        live = await world.cluster.substrates.get_object(composite, world.namespace)

        assert live is not None
        assert live.below == CHILDREN

    async def test_what_has_no_name_yet_is_no_child(self, world: MemoryWorld | RealWorld) -> None:
        composite = reference()
        world.compose(composite)
        _compose(world, composite, CHILDREN, nameless=True)

        live = await world.cluster.substrates.get_object(composite, world.namespace)

        assert live is not None
        assert live.below == CHILDREN

    async def test_one_that_composes_nothing_has_no_children(
        self, world: MemoryWorld | RealWorld
    ) -> None:
        composite = reference()
        world.compose(composite)

        live = await world.cluster.substrates.get_object(composite, world.namespace)

        assert live is not None
        assert (live.below, live.finalizers, live.deleting_since) == ((), (), None)

    async def test_one_that_cannot_go_tells_since_when_and_what_holds_it(
        self, world: MemoryWorld | RealWorld
    ) -> None:
        composite = reference()
        world.compose(composite)
        before = datetime.now(UTC)
        _hang(world, composite)

        live = await world.cluster.substrates.get_object(composite, world.namespace)

        assert live is not None
        assert live.terminating
        assert FOREIGN_FINALIZER in live.finalizers
        assert live.deleting_since is not None
        # Kubernetes writes whole seconds.
        assert live.deleting_since >= before - timedelta(seconds=1)
