"""A substrate that a run in flight made again under a live node is not the node's machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from function.contract.strategy import Phase
from reconciler.app.status.waiting_messages import PIPELINE_S
from reconciler.domain.replacement import transitions
from reconciler.domain.teardown.release import XRFacts
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld
from tests.unit.reconciler.app.replacement_world import (
    audit_of,
    make_world,
    overdue_world,
    reason_of,
    uid_of,
)
from tests.unit.reconciler.app.world import ALIVE, GOING, GONE, PAUSED, World

ANEW = "made-in-flight"
KINDS = pytest.mark.parametrize("make", [World, EnrolledWorld], ids=["declare", "enrol"])


def remake(world: World, uid: str = ANEW) -> None:
    """Put another object in the substrate's place, as a run in flight does after break-glass."""
    ((ref, live),) = world.cluster.objects.items()
    world.cluster.objects[ref] = replace(live, uid=uid, released=False)


def known(world: World) -> str | None:
    return world.resource.protected[0].uid


def live_nodes(world: World) -> int:
    return sum(node.deregistered_at is None for node in world.store.nodes.values())


async def lost_world(make: type[World] = World) -> World:
    world = make_world(make)
    await world.until_ready()
    remake(world)
    world.react()
    await world.tick()
    assert reason_of(world) == "SubstrateLost"
    return world


@KINDS
async def test_its_uid_is_remembered_with_the_node_and_costs_nothing_afterwards(
    make: type[World],
) -> None:
    world = make_world(make)
    await world.tick_until_quiet()
    before = known(world)
    world.register()
    await world.tick_until_quiet()
    version = world.resource.version

    for _ in range(3):
        await world.tick()

    assert before is None
    assert known(world) == uid_of(world)
    assert world.resource.version == version


@KINDS
async def test_another_one_under_its_name_counts_as_none(make: type[World]) -> None:
    world = await lost_world(make)

    await world.tick_until_quiet()

    assert reason_of(world) == "SubstrateLost"
    assert world.status["phase"] == "Pending"
    assert len(world.store.tokens) == 1
    assert live_nodes(world) == 1
    assert uid_of(world) == ANEW
    assert audit_of(world) == ["unreleased-substrate-gone"]


async def test_it_stays_lost_where_its_absence_was_seen_in_between() -> None:
    world = make_world()
    await world.until_ready()
    ((ref, live),) = world.cluster.objects.items()
    world.cluster.objects.clear()
    world.raw["spec"]["observed"] = {"exists": False}
    await world.tick()

    world.cluster.objects[ref] = replace(live, uid=ANEW)
    world.react()
    await world.tick_until_quiet()

    assert reason_of(world) == "SubstrateLost"
    assert known(world) == live.uid


@pytest.mark.parametrize("uid", [ANEW, "gone"])
async def test_its_failure_is_not_the_failure_of_the_nodes_machine(uid: str) -> None:
    world = make_world()
    await world.until_ready()
    own = uid_of(world)
    remake(world)
    world.react()
    world.raw["spec"]["observed"].update(failed=True, ready=False, reason="QuotaExceeded")
    if uid != ANEW:
        world.cluster.objects.clear()
    await world.tick()
    said, reason = world.status["phase"], reason_of(world)

    world.cluster.compose(world.resource.protected[0].reference, uid=own)
    remake(world, own)
    world.react()
    await world.tick_until_quiet()

    assert (said, reason) == ("Pending", "SubstrateLost")
    assert "broker.ProvisionedResourceFailed" not in world.event_types()
    assert world.status["phase"] == "Ready"


async def test_what_a_lagging_record_says_is_looked_up_before_it_is_believed() -> None:
    world = make_world()
    await world.until_ready()
    world.raw["spec"]["observed"]["uid"] = "an-earlier-one"

    await world.tick()

    assert reason_of(world) is None
    assert world.status["phase"] == "Ready"
    assert known(world) == uid_of(world)


async def test_the_one_that_comes_back_is_the_nodes() -> None:
    world = make_world()
    await world.until_ready()
    own = uid_of(world)
    remake(world)
    world.react()
    await world.tick()

    remake(world, own)
    world.react()
    await world.tick_until_quiet()

    assert reason_of(world) is None
    assert world.status["phase"] == "Ready"


async def test_a_row_that_knows_none_learns_it_and_accuses_nobody() -> None:
    world = make_world()
    await world.until_ready()
    world.store.resources[world.resource.id] = transitions.known_as(world.resource, None)

    await world.tick_until_quiet()

    assert reason_of(world) is None
    assert known(world) == uid_of(world)


async def test_a_function_that_tells_no_uid_changes_nothing() -> None:
    world = make_world()
    await world.until_ready()
    remake(world)
    del world.raw["spec"]["observed"]["uid"]

    await world.tick()

    assert reason_of(world) is None


async def test_a_restored_record_brings_other_uids_that_are_right() -> None:
    world = make_world()
    await world.until_ready()
    remake(world, "restored")
    world.raw["metadata"]["uid"] = "record-restored"
    del world.raw["status"]

    await world.tick()
    before = known(world)
    world.react()
    await world.tick_until_quiet()

    assert before is None
    assert reason_of(world) is None
    assert known(world) == "restored"
    assert live_nodes(world) == 1


async def test_a_restored_record_of_one_that_was_let_go_accuses_nobody() -> None:
    world = await overdue_world()
    await world.tick()
    world.raw["metadata"]["uid"] = "record-restored"

    world.delete(xr=GOING)
    for _ in range(3):
        await world.tick()
    world.cluster.drop(world.resource.protected[0].reference)
    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert audit_of(world) == ["recreate"]


async def test_before_a_node_came_any_machine_is_right() -> None:
    world = make_world()
    await world.tick_until_quiet()

    remake(world)
    await world.tick_until_quiet()
    world.register()
    await world.tick_until_quiet()

    assert world.status["phase"] == "Ready"
    assert known(world) == ANEW


@KINDS
async def test_raising_retry_takes_the_node_out_and_then_the_machine_without_one(
    make: type[World],
) -> None:
    world = await lost_world(make)

    world.raw["spec"]["declaration"]["retry"] = 1
    await world.tick_until_quiet()
    out = live_nodes(world)
    world.store.clock.advance(timedelta(minutes=1))
    await world.tick_until_quiet()
    fresh = uid_of(world)
    world.register()
    await world.tick_until_quiet()

    assert out == 0
    assert fresh != ANEW
    assert world.resource.generation == 2
    assert world.status["phase"] == "Ready"
    assert known(world) == fresh
    assert reason_of(world) is None
    (why,) = (row.reason for row in world.store.audit if row.action == "recreate")
    assert why.endswith("it took the place of the one that its node registered from")


@pytest.mark.parametrize("xr", [ALIVE, GONE], ids=["xr-alive", "xr-gone"])
async def test_its_deletion_takes_the_node_out_and_then_everything(xr: XRFacts) -> None:
    world = await lost_world()

    world.delete(xr=xr)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert world.cluster.objects == {}
    assert live_nodes(world) == 0
    assert not world.finalizer


async def test_one_that_is_gone_under_a_paused_xr_may_still_be_made_by_its_last_run() -> None:
    world = make_world()
    await world.until_ready()
    world.cluster.objects.clear()

    world.delete(xr=PAUSED)
    for _ in range(5):
        await world.tick()
    early = world.resource.phase
    world.store.clock.advance(timedelta(seconds=PIPELINE_S + 1))
    await world.tick_until_quiet()

    assert early is Phase.DEPROVISIONING
    assert world.resource.phase is Phase.DELETED


async def test_a_node_that_was_taken_out_leaves_no_uid_behind() -> None:
    world = make_world()
    await world.until_ready()
    for node in world.store.nodes.values():
        node.deregistered_at = world.store.clock.now()

    await world.tick()

    assert known(world) is None
