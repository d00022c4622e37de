"""What an XR composes no more that was orphaned and applied again is drained."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from function.contract.conditions import ConditionType, find
from function.contract.record import XRReference
from function.contract.strategy import Phase
from reconciler.app.converge.pool_shrink import LOOK_S, SETTLED_S
from reconciler.ports.cluster.substrates import LiveObject
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import XR, EnrolledWorld, record
from tests.unit.reconciler.app.world import ALIVE, GOING, GONE, PAUSED, World

SETTLED = replace(ALIVE, settled_at=samples.NOW)
AGAIN = XR.model_copy(update={"uid": "applied-again"})
DELETED = "delete record"


async def _orphaned(world: World) -> World:
    """Take a node to Ready, then its XR away from above it."""
    await world.until_ready()
    world.raw["metadata"]["ownerReferences"] = []
    world.cluster.journal.clear()
    world.store.clock.advance(timedelta(seconds=2 * SETTLED_S))
    return world


async def _left() -> World:
    return await _orphaned(EnrolledWorld(raw=record()))


def _control_substrate(world: World, controller: XRReference | None) -> None:
    reference = world.resource.protected[0].reference
    key = (reference.api_version, reference.kind, reference.name)
    found: LiveObject = world.cluster.objects[key]
    world.cluster.objects[key] = replace(found, controller=controller)


async def test_a_member_that_its_xr_leaves_out_is_drained_in_order() -> None:
    world = await _left()
    world.cluster.xr = SETTLED

    await world.tick()
    assert DELETED in world.cluster.journal
    assert world.store.nodes
    uid = XR.uid
    world.cluster.xrs[XR.api_version, XR.kind, XR.name] = ("applied-again", SETTLED)
    assert uid != "applied-again"
    world.raw["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert "delete substrate" in world.cluster.journal


@pytest.mark.parametrize(
    "xr",
    [
        pytest.param(GONE, id="none"),
        pytest.param(ALIVE, id="on-its-way"),
        pytest.param(replace(GOING, settled_at=samples.NOW), id="going"),
        pytest.param(replace(PAUSED, settled_at=samples.NOW), id="paused"),
        pytest.param(
            replace(ALIVE, settled_at=samples.NOW + timedelta(seconds=1.5 * SETTLED_S)), id="new"
        ),
    ],
)
async def test_it_stays_while_its_xr_may_still_take_it_over(xr: Any) -> None:
    world = await _left()
    world.cluster.xr = xr

    await world.tick()

    assert DELETED not in world.cluster.journal
    orphaned = find(world.status, ConditionType.ORPHANED)
    assert orphaned is not None
    assert orphaned.status == "True"


async def test_it_is_looked_at_again_once_its_xr_has_been_at_rest_long_enough() -> None:
    world = await _left()
    at = samples.NOW + timedelta(seconds=1.5 * SETTLED_S)
    world.cluster.xr = replace(ALIVE, settled_at=at)

    again = await world.tick()

    assert again == SETTLED_S / 2


@pytest.mark.parametrize("xr", [GONE, ALIVE, PAUSED])
async def test_it_is_looked_at_again_while_its_xr_is_not_at_rest(xr: Any) -> None:
    world = await _left()
    world.cluster.xr = xr

    assert await world.tick() == LOOK_S


async def test_it_stays_where_its_xr_composes_it_without_our_step() -> None:
    world = await _left()
    world.cluster.xr = SETTLED
    _control_substrate(world, AGAIN)

    await world.tick()

    assert DELETED not in world.cluster.journal


async def test_one_that_was_taken_over_since_it_was_read_stays() -> None:
    world = await _left()
    world.cluster.xr = SETTLED
    live = {**world.raw, "metadata": dict(world.raw["metadata"])}
    live["metadata"]["ownerReferences"] = [{"uid": AGAIN.uid, "controller": True}]
    world.cluster.records[samples.NAMESPACE, live["metadata"]["name"]] = live

    await world.tick()

    assert DELETED not in world.cluster.journal


async def test_one_of_a_declaration_stays() -> None:
    world = await _orphaned(World())
    world.cluster.xr = SETTLED

    await world.tick()

    assert DELETED not in world.cluster.journal
