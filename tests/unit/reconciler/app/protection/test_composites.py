"""Enrolled resources that are composites themselves: what is below them is held with them."""

from __future__ import annotations

from dataclasses import replace

from function.contract.record import SubstrateReference, wire
from reconciler.ports.cluster.substrates import LiveObject
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import XR, EnrolledWorld, record
from tests.unit.reconciler.app.world import GONE

NAMED = SubstrateReference(api_version="cloud.test/v1", kind="Server", name="db-1")
"""A composite that its step named itself."""


def _world(*composites: str) -> EnrolledWorld:
    raw = record()
    raw["spec"]["substrate"][0] = wire(NAMED)
    world = EnrolledWorld(raw=raw)
    world.cluster.composites = {("cloud.test/v1", kind) for kind in composites}
    return world


def _live(world: EnrolledWorld, reference: SubstrateReference) -> LiveObject | None:
    key = (reference.api_version, reference.kind, reference.name)
    return world.cluster.objects.get(key)


def _below_held(world: EnrolledWorld, reference: SubstrateReference) -> bool:
    live = _live(world, reference)
    assert live is not None
    return live.below_held


async def test_a_composite_of_any_name_is_marked_for_its_aggregate() -> None:
    world = _world("Server")

    await world.until_ready()

    marks = [line for line in world.cluster.journal if line.startswith("hold below")]
    assert marks == [f"hold below Server db-1 for {world.resource.xr_name}"]
    assert _below_held(world, NAMED)


async def test_it_is_marked_before_its_node_registers() -> None:
    world = _world("Server")

    await world.tick_until_quiet()

    assert world.store.nodes == {}
    assert _below_held(world, NAMED)


async def test_a_leaf_is_not() -> None:
    world = _world()

    await world.until_ready()

    assert not _below_held(world, NAMED)


async def test_another_composites_is_not() -> None:
    world = _world("Server")
    await world.tick()
    stranger = XR.model_copy(update={"name": "another"})
    world.cluster.compose(NAMED, controller=stranger)

    await world.tick()

    assert not _below_held(world, NAMED)


async def test_one_that_goes_is_not() -> None:
    world = _world("Server")
    await world.tick()
    world.cluster.compose(NAMED, controller=XR)
    ((key, live),) = world.cluster.objects.items()
    world.cluster.objects[key] = replace(live, terminating=True)

    await world.tick()

    assert not _below_held(world, NAMED)


async def test_a_sibling_that_composes_is_marked_and_let_go_with_its_hold() -> None:
    world = _world("Network")
    await world.until_ready()
    world.compose_network()
    await world.tick()
    assert _below_held(world, samples.NETWORK)

    del world.raw["spec"]["substrate"][1]
    await world.tick_until_quiet()

    assert not _below_held(world, samples.NETWORK)


async def test_a_mark_costs_its_composite_one_write() -> None:
    world = _world("Server")
    await world.until_ready()
    world.cluster.journal.clear()

    await world.tick_until_quiet()

    assert world.cluster.journal == []


async def test_a_marked_composite_goes_after_its_node() -> None:
    world = _world("Server")
    await world.until_ready()

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _live(world, NAMED) is None
    assert not world.finalizer
