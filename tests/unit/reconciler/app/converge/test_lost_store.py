"""A record whose aggregate the store lost: it came out of a backup that is older."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from function.contract.strategy import Phase
from reconciler.domain.record import record_view
from tests.fakes.memory import FrozenClock, MemoryStore
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import ALIVE, World


async def _lost(world: World) -> World:
    """Return the world after its store lost all that it knew of the record."""
    world.raw["spec"]["observed"]["bootstrapGeneration"] = 1
    return World(
        raw=world.raw, cluster=world.cluster, store=MemoryStore(clock=FrozenClock(samples.NOW))
    )


async def test_f26_a_lost_aggregate_gets_the_id_that_its_machine_is_named_after() -> None:
    world = World()
    await world.until_ready()
    before = world.resource
    world = await _lost(world)

    await world.tick()

    assert world.resource.id == before.id
    assert world.resource.xr_name == before.xr_name
    assert world.resource.generation == 1
    assert world.status["xrName"] == before.xr_name


async def test_f26_no_token_is_minted_beside_a_machine_that_may_have_had_one() -> None:
    world = World()
    await world.until_ready()
    world = await _lost(world)

    await world.tick()

    assert world.store.tokens == {}
    assert world.resource.phase is Phase.ENROLLING


async def test_f26_the_record_of_a_lost_aggregate_ends_in_order() -> None:
    world = World()
    await world.until_ready()
    world = await _lost(world)
    await world.tick()
    world.delete(xr=ALIVE)

    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert world.cluster.objects == {}
    assert not world.finalizer


async def test_an_id_that_the_store_knows_is_not_given_again() -> None:
    world = World()
    await world.until_ready()
    before = world.resource
    world.delete(xr=ALIVE)
    await world.tick_until_quiet()
    status = {"provisionedResourceID": str(before.id), "xrName": before.xr_name}
    raw = samples.record(uid="record-2")
    raw["status"], raw["spec"]["observed"] = status, {"exists": True}
    world = World(raw=raw, store=world.store)

    await world.tick()

    assert len(world.store.resources) == 2
    assert world.store.resources[before.id].phase is Phase.DELETED


async def test_without_a_machine_an_id_is_minted() -> None:
    world = World()
    await world.tick()
    before = world.resource
    world = World(raw=world.raw)

    await world.tick()

    assert world.resource.id != before.id


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"provisionedResourceID": "no-id"},
        {"provisionedResourceID": str(samples.ID)},
        {"provisionedResourceID": str(samples.ID), "xrName": "pr-another"},
        {
            "provisionedResourceID": "00000000-0000-0000-0000-000000000000",
            "xrName": "pr-00000000-0000-0000-0000-000000000000",
        },
        {"provisionedResourceID": ["x"], "xrName": names.xr_name(samples.ID)},
    ],
)
def test_a_status_that_names_no_aggregate_is_taken_for_none(status: dict[str, Any]) -> None:
    raw = {**samples.record(), "status": status}

    assert record_view.parse(raw).named_resource is None


def test_a_status_names_its_aggregate() -> None:
    status = {"provisionedResourceID": str(samples.ID), "xrName": names.xr_name(samples.ID)}

    assert record_view.parse({**samples.record(), "status": status}).named_resource == samples.ID
