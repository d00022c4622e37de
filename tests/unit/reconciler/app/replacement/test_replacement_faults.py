"""Machines that must not be made anew, or not yet, and recreations that something gets into."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from function.contract.conditions import ConditionType, find
from function.contract.record import XRReference
from function.contract.strategy import Phase
from reconciler.app.replacement.rate_limit import AT_ONCE_MAX, BEGUN_MAX, PER, ReplacementRateLimit
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.fakes.identity import InMemoryNodeDeregistrar
from tests.fakes.memory import FrozenClock, MemoryStore
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld
from tests.unit.reconciler.app.replacement_world import (
    TIMEOUT,
    audit_of,
    make_world,
    overdue_world,
    reason_of,
    uid_of,
    waiting_world,
)
from tests.unit.reconciler.app.world import ALIVE, GONE, PAUSED, CrashError, World

STEPS_MAX = 30
"""More effects than a recreation has up to letting go."""


def _forgotten(world: World) -> bool:
    """Tell whether no recreation is under way, and none was counted."""
    return world.resource.recreating_since is None and world.resource.recreations == 0


async def _let_go(world: World) -> None:
    """Crash right after the substrate was remembered as let go, before it is annotated."""
    for _ in range(STEPS_MAX):
        world.fuse.after = world.fuse.burnt + 1
        with pytest.raises(CrashError):
            await world.tick()
        if world.resource.protected[0].released:
            world.fuse.after = None
            return
    pytest.fail("the substrate is never let go")


def _annotated(world: World) -> bool:
    (live,) = world.cluster.objects.values()
    return live.released


def _reported(world: World) -> None:
    for node in world.store.nodes.values():
        node.reported_at = world.store.clock.now()


async def test_a_restart_after_an_outage_destroys_no_machine_that_waited() -> None:
    world = await waiting_world()
    world.store.clock.advance(timedelta(hours=1))
    fresh = World(
        catalog=world.catalog,
        cluster=world.cluster,
        store=world.store,
        raw=world.raw,
        reachable=timedelta(),
    )

    await fresh.tick()
    fresh.reachable = TIMEOUT - timedelta(seconds=1)
    await fresh.tick()

    assert fresh.resource.recreating_since is None
    assert (fresh.status["substrate"], reason_of(fresh)) == ("Present", "RegistrationTimeout")
    fresh.reachable = TIMEOUT
    await fresh.tick()
    assert fresh.status["substrate"] == "Absent"


async def test_a_restart_in_mid_recreation_takes_no_node_out_that_could_not_report() -> None:
    world = await overdue_world(silent=True)
    world.fuse.after = world.fuse.burnt + 1
    with pytest.raises(CrashError):
        await world.tick()
    assert world.resource.recreating_since is not None
    world.fuse.after, world.reachable = None, timedelta()

    await world.tick_until_quiet()

    assert _forgotten(world)
    assert all(node.deregistered_at is None for node in world.store.nodes.values())


@pytest.mark.parametrize("hinder", ["refused", "paused", "orphaned"])
async def test_absent_is_not_said_before_crossplanes_delete_is_let_through(hinder: str) -> None:
    world = await overdue_world()
    await _let_go(world)
    edited = copy.deepcopy(world.raw["spec"]["declaration"]["parameters"])
    if hinder == "refused":
        world.raw["spec"]["declaration"]["parameters"] = {"region": 7}
    elif hinder == "paused":
        world.cluster.xr = PAUSED
    else:
        owners = world.raw["metadata"].pop("ownerReferences")
        world.cluster.xr = GONE

    await world.tick()

    assert (world.status["substrate"], _annotated(world)) == ("Present", False)
    world.raw["spec"]["declaration"]["parameters"] = edited
    world.cluster.xr = ALIVE
    if hinder == "orphaned":
        world.raw["metadata"]["ownerReferences"] = owners
    await world.tick_until_quiet()
    assert (world.resource.generation, world.resource.recreations) == (2, 1)


async def test_a_release_that_fails_publishes_nothing_and_is_told() -> None:
    world = await overdue_world()
    reference = world.resource.protected[0].reference
    patch = (reference.api_version, reference.kind, "patch")
    world.cluster.forbidden.add(patch)

    again = [await world.tick() for _ in range(2)]

    assert (world.status["substrate"], _annotated(world)) == ("Present", False)
    assert reason_of(world) == "RightsMissing"
    assert None not in again
    world.cluster.forbidden.clear()
    await world.tick_until_quiet()
    assert (reason_of(world), world.resource.generation, world.resource.recreations) == (None, 2, 1)


async def test_a_kind_that_is_no_longer_served_is_told() -> None:
    world = await overdue_world()
    await _let_go(world)
    world.cluster.kinds = {}

    await world.tick()

    assert reason_of(world) == "KindNotServed"
    assert world.status["substrate"] == "Present"
    world.cluster.kinds = None
    await world.tick_until_quiet()
    assert world.resource.generation == 2


async def test_a_clock_that_runs_ahead_of_the_databases_takes_no_fresh_node_out() -> None:
    store = MemoryStore(clock=FrozenClock(samples.NOW))
    ahead = FrozenClock(samples.NOW)
    world = make_world(store=store, clock=ahead, policy="Recreate")
    await world.tick_until_quiet()
    ahead.advance(TIMEOUT * 2)
    world.register()
    world.raw["spec"]["observed"] = {"exists": True, "ready": True}

    await world.tick_until_quiet()

    (node,) = store.nodes.values()
    assert node.deregistered_at is None
    assert (world.resource.phase, reason_of(world)) == (Phase.READY, None)
    store.clock.advance(TIMEOUT)
    await world.tick()
    assert node.deregistered_at is not None


@pytest.mark.parametrize(
    "observed",
    [
        {"exists": False},
        {"exists": True, "ready": False},
        {"exists": True, "ready": False, "failed": True, "reason": "Quota"},
    ],
)
async def test_a_machine_that_is_no_longer_ready_does_not_stall_for_its_node(
    observed: dict[str, Any],
) -> None:
    world = make_world()
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT)
    world.raw["spec"]["observed"] = observed
    if not observed["exists"]:
        world.cluster.objects.clear()

    await world.tick()

    assert world.resource.phase is not Phase.ENROLLING
    assert reason_of(world) in (None, "Failed")


def _orphan(world: World) -> list[dict[str, Any]]:
    owners: list[dict[str, Any]] = world.raw["metadata"].pop("ownerReferences")
    world.cluster.xr = GONE
    return owners


def _apply_again(world: World, owners: list[dict[str, Any]]) -> None:
    """Apply the XR under its name: another uid, and it knows nothing of the machine."""
    world.raw["metadata"]["ownerReferences"] = [{**owners[0], "uid": "xr-2"}]
    world.raw["spec"]["declaration"]["xr"]["uid"] = "xr-2"
    world.raw["spec"]["released"] = True
    world.cluster.xr = ALIVE


@pytest.mark.parametrize("controlled", [False, True])
async def test_a_machine_that_its_xr_does_not_know_any_more_is_deleted_by_us(
    *, controlled: bool
) -> None:
    world = await overdue_world()
    old = uid_of(world)
    if controlled:
        ((key, live),) = world.cluster.objects.items()
        former = XRReference.model_validate(world.raw["spec"]["declaration"]["xr"])
        world.cluster.objects[key] = replace(live, controller=former)
    await world.tick()
    owners = _orphan(world)
    await world.tick()
    assert "delete substrate" not in world.cluster.journal

    _apply_again(world, owners)
    await world.tick()
    await world.tick_until_quiet()

    assert world.cluster.journal.count("delete substrate") == 1
    assert uid_of(world) != old
    assert (world.resource.generation, world.resource.recreations) == (2, 1)


async def test_a_machine_that_goes_already_is_not_deleted_again_by_us() -> None:
    world = await overdue_world()
    await world.tick()
    owners = _orphan(world)
    await world.tick()
    ((key, live),) = world.cluster.objects.items()
    world.cluster.objects[key] = replace(live, terminating=True)
    _apply_again(world, owners)

    for _ in range(3):
        await world.tick()

    assert "delete substrate" not in world.cluster.journal
    del world.cluster.objects[key]
    await world.tick_until_quiet()
    assert (world.resource.generation, world.resource.recreations) == (2, 1)


async def test_a_machine_that_its_xr_controls_is_left_to_crossplane() -> None:
    world = await overdue_world()
    ((key, live),) = world.cluster.objects.items()
    xr = XRReference.model_validate(world.raw["spec"]["declaration"]["xr"])
    world.cluster.objects[key] = replace(live, controller=xr)
    await world.tick()
    world.raw["spec"]["released"] = True

    for _ in range(3):
        await world.tick()

    assert "delete substrate" not in world.cluster.journal
    assert list(world.cluster.objects) == [key]


async def test_a_policy_that_is_taken_back_in_time_keeps_the_machine() -> None:
    world = await overdue_world()
    world.fuse.after = world.fuse.burnt + 1
    with pytest.raises(CrashError):
        await world.tick()
    assert world.resource.recreating_since is not None
    world.raw["spec"]["declaration"]["registration"] = {"policy": "Keep"}

    await world.tick_until_quiet()

    assert _forgotten(world)
    assert (world.resource.generation, reason_of(world)) == (1, "RegistrationTimeout")
    world.register()
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.READY


async def test_a_policy_that_is_taken_back_after_the_tokens_ended_finishes_what_began() -> None:
    world = await overdue_world()
    world.fuse.after = world.fuse.burnt + 2
    with pytest.raises(CrashError):
        await world.tick()
    assert all(row.spent for row in world.store.tokens.values())
    world.raw["spec"]["declaration"]["registration"] = {"policy": "Keep"}

    await world.tick_until_quiet()

    assert (world.resource.generation, world.resource.recreations) == (2, 1)


async def test_a_node_that_reports_just_before_it_is_taken_out_is_not_said_to_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await overdue_world(silent=True)
    reclaim = InMemoryNodeDeregistrar.reclaim

    async def reported_first(self: InMemoryNodeDeregistrar, token: ids.BootstrapTokenID) -> bool:
        _reported(world)
        return await reclaim(self, token)

    monkeypatch.setattr(InMemoryNodeDeregistrar, "reclaim", reported_first)

    await world.tick_until_quiet()

    assert "NodeDeregistered" not in {event.reason for event in world.cluster.events}
    (node,) = world.store.nodes.values()
    assert node.deregistered_at is None
    assert (world.resource.phase, world.resource.recreations) == (Phase.READY, 0)


async def test_each_silent_node_that_leaves_is_told() -> None:
    world = await overdue_world(silent=True)
    await world.tick_until_quiet()
    world.register()
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT)

    await world.tick_until_quiet()

    told = {event.message for event in world.cluster.events if event.reason == "NodeDeregistered"}
    assert len(told) == world.resource.recreations == 2


@pytest.mark.parametrize("reported", [False, True])
async def test_a_node_that_left_by_other_means_is_not_recreated(*, reported: bool) -> None:
    world = await waiting_world()
    world.register()
    if reported:
        _reported(world)
    await world.tick_until_quiet()
    for node in world.store.nodes.values():
        node.deregistered_at = world.store.clock.now()
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT)

    await world.tick_until_quiet()

    assert _forgotten(world)
    assert reason_of(world) == "DeregisteredElsewhere"


async def test_a_node_that_came_reported_and_left_since_it_began_is_not_recreated() -> None:
    world = await overdue_world()
    world.fuse.after = world.fuse.burnt + 1
    with pytest.raises(CrashError):
        await world.tick()
    world.fuse.after = None
    world.store.clock.advance(timedelta(minutes=1))
    world.register()
    for node in world.store.nodes.values():
        node.deregistered_at = world.store.clock.now()

    await world.tick_until_quiet()

    assert _forgotten(world)


async def test_a_machine_that_is_gone_is_not_seen_again_by_a_late_word_of_the_function() -> None:
    world = await overdue_world()
    await world.tick()
    late = {"exists": True, "ready": True, "bootstrapGeneration": 1}
    world.react()
    await world.tick()
    assert world.resource.phase is Phase.PENDING
    world.raw["spec"].pop("released")
    world.raw["spec"]["observed"] = late

    await world.tick()

    assert (world.resource.phase, reason_of(world)) == (Phase.PENDING, None)
    assert world.resource.generation == 2


async def test_a_retry_between_letting_go_and_its_event_is_counted_from_the_start() -> None:
    world = await overdue_world()
    await _let_go(world)
    world.raw["spec"]["declaration"] |= {"retry": 1}

    await world.tick()

    messages = {event.message for event in world.cluster.events if event.reason == "Recreating"}
    assert len(messages) == 1
    assert "1 of 3" in messages.pop()


async def test_siblings_are_followed_while_a_recreation_waits() -> None:
    world = make_world(EnrolledWorld, policy="Recreate")
    assert isinstance(world, EnrolledWorld)
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT)
    await world.tick()
    world.cluster.xr = PAUSED
    world.compose_network()
    network = samples.NETWORK
    world.cluster.composites.add((network.api_version, network.kind))

    await world.tick()

    found = world.network()
    assert found is not None
    assert found.below_held


def _another(resource: ProvisionedResource, xr: str) -> ProvisionedResource:
    identity = ids.ProvisionedResourceID(UUID(int=uuid4().int))
    key = replace(resource.key, name=xr, resource=str(identity))
    return replace(resource, id=identity, xr_name=f"pr-{identity}", key=key, recreating_since=None)


async def _begin(store: MemoryStore, *, xrs: list[str]) -> tuple[ReplacementRateLimit, list[bool]]:
    brake = ReplacementRateLimit(InMemoryBrokerRepository(store, samples.CLUSTER))
    results = []
    for xr in xrs:
        one = _another(samples.resource(phase=Phase.ENROLLING), xr)
        store.resources[one.id] = one
        results.append(await brake.begin(one, samples.NOW) is not None)
    return brake, results


async def test_of_one_xr_few_are_made_anew_at_once() -> None:
    store = MemoryStore(clock=FrozenClock(samples.NOW))

    _, begun = await _begin(store, xrs=["pool"] * (AT_ONCE_MAX + 2))

    assert begun == [True] * AT_ONCE_MAX + [False] * 2


async def test_of_all_few_begin_in_a_minute() -> None:
    store = MemoryStore(clock=FrozenClock(samples.NOW))
    brake, begun = await _begin(store, xrs=[f"xr-{item}" for item in range(BEGUN_MAX + 1)])
    assert begun == [True] * BEGUN_MAX + [False]
    (last,) = (one for one in store.resources.values() if one.recreating_since is None)

    assert await brake.begin(last, samples.NOW + PER) is not None


async def test_one_that_is_held_back_stalls_and_says_why() -> None:
    world = await overdue_world()
    for _ in range(AT_ONCE_MAX):
        other = replace(
            _another(world.resource, world.resource.key.name), recreating_since=samples.NOW
        )
        other = replace(other, created_at=samples.NOW - timedelta(days=1))
        world.store.resources[other.id] = other

    await world.tick()

    stalled = find(world.status, ConditionType.STALLED)
    assert stalled is not None
    assert (stalled.reason, world.status["substrate"]) == ("RegistrationTimeout", "Present")
    assert "many nodes are overdue at once" in stalled.message
    assert audit_of(world) == []
