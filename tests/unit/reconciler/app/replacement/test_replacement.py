"""Machines whose nodes do not come: kept or made anew, with a crash after every effect."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType, find, is_true
from function.contract.record import SubstrateReference
from function.contract.strategy import MeshRole, Phase
from reconciler.app.replacement.replacement import SILENT_S
from reconciler.domain.aggregate.resource import ProvisionedResource
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld
from tests.unit.reconciler.app.replacement_world import (
    TIMEOUT,
    audit_of,
    make_world,
    overdue_world,
    reason_of,
    stalled_of,
    uid_of,
    waiting_world,
)
from tests.unit.reconciler.app.world import (
    ALIVE,
    GOING,
    GONE,
    PAUSED,
    RESTART,
    CrashError,
    World,
)

EFFECTS_MAX = 40
"""More than a recreation from its beginning to the next node takes."""


async def test_a_kept_machine_stalls_and_its_node_stays_welcome() -> None:
    world = await overdue_world(policy="Keep")

    await world.tick_until_quiet()

    assert reason_of(world) == "RegistrationTimeout"
    assert world.resource.recreations == 0
    world.register()
    await world.tick_until_quiet()
    assert stalled_of(world) is None
    assert is_true(world.status, ConditionType.READY)


async def test_a_kept_node_that_never_reported_is_told_until_it_reports() -> None:
    world = await overdue_world(policy="Keep", silent=True)

    await world.tick_until_quiet()

    ready = find(world.status, ConditionType.READY)
    assert reason_of(world) == "NeverReported"
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "NeverReported")
    assert world.status["phase"] == "Ready"
    registered = find(world.status, ConditionType.NODE_REGISTERED)
    assert registered is not None
    assert (registered.status, registered.reason) == ("True", "NeverReported")
    (node,) = world.store.nodes.values()
    assert node.deregistered_at is None
    node.reported_at = world.store.clock.now()
    await world.tick_until_quiet()
    assert stalled_of(world) is None
    assert is_true(world.status, ConditionType.READY)


@pytest.mark.parametrize("policy", ["Keep", "Recreate"])
async def test_a_silent_node_is_looked_at_again_when_its_time_is_up(policy: str) -> None:
    world = await waiting_world(policy=policy)
    world.register()
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT - timedelta(minutes=5))

    assert await world.tick() == timedelta(minutes=5).total_seconds()


async def test_one_that_stalls_is_looked_at_again_until_it_reports() -> None:
    world = await overdue_world(policy="Keep", silent=True)
    await world.tick_until_quiet()
    stalled = await world.tick()
    (node,) = world.store.nodes.values()

    node.reported_at = world.store.clock.now()
    await world.tick_until_quiet()
    reported = await world.tick()

    assert stalled == SILENT_S
    assert reported is None


async def test_nothing_is_recreated_before_its_time() -> None:
    world = await waiting_world()
    world.store.clock.advance(TIMEOUT - timedelta(seconds=1))

    await world.tick_until_quiet()

    assert stalled_of(world) is None
    assert world.resource.recreating_since is None


@pytest.mark.parametrize("silent", [False, True])
async def test_a_machine_is_made_anew_with_a_new_token_and_the_same_id(*, silent: bool) -> None:
    world = await overdue_world(silent=silent)
    identity, old = world.resource.id, uid_of(world)

    await world.tick_until_quiet()

    resource = world.resource
    assert (resource.id, resource.generation, resource.recreations) == (identity, 2, 1)
    assert uid_of(world) != old
    assert world.status["substrate"] == "Present"
    assert world.status["bootstrap"]["state"] == "Issued"
    assert (resource.phase, resource.recreating_since) == (Phase.ENROLLING, None)
    assert not resource.protected[0].released
    assert audit_of(world) == ["recreate"]
    assert stalled_of(world) is None
    await world.until_ready()
    assert world.event_types().count("broker.ProvisionedResourceReady") == (2 if silent else 1)


async def test_a_machine_is_let_go_by_the_version_that_is_served() -> None:
    world = await overdue_world()
    before = world.resource.protected[0].reference
    moved = before.model_copy(update={"api_version": f"{before.api_version}9"})
    ((_, live),) = world.cluster.objects.items()
    world.cluster.objects = {(moved.api_version, moved.kind, moved.name): live}
    xr = (samples.XR["apiVersion"], samples.XR["kind"])
    world.cluster.kinds = dict.fromkeys([xr, (moved.api_version, moved.kind)], True)

    await world.tick()

    (released,) = world.cluster.objects.values()
    assert released.released
    assert stalled_of(world) is None
    assert world.status["substrate"] == "Absent"


async def test_while_it_is_under_way_it_says_so() -> None:
    world = await overdue_world()

    await world.tick()

    reconciling = find(world.status, ConditionType.RECONCILING)
    assert reconciling is not None
    assert (reconciling.status, reconciling.reason) == ("True", "Recreating")
    assert world.status["substrate"] == "Absent"
    assert "secretRef" not in world.status["bootstrap"]
    assert world.cluster.secrets == {}
    assert not is_true(world.status, ConditionType.READY)
    assert [event.reason for event in world.cluster.events].count("Recreating") == 2
    assert all("1 of 3" in item.message for item in world.cluster.events if item.warning)


async def test_no_token_is_published_before_the_function_takes_its_word_back() -> None:
    world = await overdue_world()
    await world.tick()
    world.react()
    assert world.raw["spec"]["released"]

    await world.tick()

    assert world.status["substrate"] == "Present"
    for _ in range(3):
        await world.tick()
        assert "secretRef" not in world.status["bootstrap"]
        assert world.resource.generation == 1
    world.react()
    await world.tick()
    assert world.status["bootstrap"]["generation"] == 2


async def test_a_node_that_registered_before_the_tokens_ended_wins() -> None:
    world = await overdue_world()
    revoke = world.store.clock.now
    recreated = world.resource
    world.store.resources[recreated.id] = replace(recreated, recreating_since=revoke())
    world.register()

    await world.tick_until_quiet()

    assert world.resource.phase is Phase.READY
    assert (world.resource.recreations, world.resource.recreating_since) == (0, None)
    assert "release" not in world.cluster.journal
    assert audit_of(world) == []


async def test_a_silent_node_that_reports_in_time_wins() -> None:
    world = await overdue_world(silent=True)
    (node,) = world.store.nodes.values()
    node.reported_at = world.store.clock.now()

    await world.tick_until_quiet()

    assert world.resource.phase is Phase.READY
    assert node.deregistered_at is None
    assert world.resource.recreations == 0


async def test_after_the_last_attempt_people_are_asked_until_retry_is_raised() -> None:
    world = await overdue_world(attempts=2)
    for _ in range(2):
        await world.tick_until_quiet()
        world.store.clock.advance(TIMEOUT)
    await world.tick_until_quiet()
    assert reason_of(world) == "RecreationsExhausted"
    assert (world.resource.recreations, world.resource.generation) == (2, 3)
    assert all(row.reason.endswith(": no node registered in time") for row in world.store.audit)
    world.store.clock.advance(timedelta(days=2))
    await world.tick_until_quiet()
    assert reason_of(world) == "RecreationsExhausted"

    world.raw["spec"]["declaration"]["retry"] = 1
    await world.tick_until_quiet()

    assert (world.resource.recreations, world.resource.generation) == (1, 4)
    assert audit_of(world) == ["recreate", "recreate", "retry", "recreate"]


async def test_a_node_that_comes_after_the_last_attempt_is_welcome() -> None:
    world = await overdue_world(attempts=1)
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT)
    await world.tick_until_quiet()
    assert reason_of(world) == "RecreationsExhausted"

    world.register()
    await world.tick_until_quiet()

    assert is_true(world.status, ConditionType.READY)
    assert stalled_of(world) is None


@pytest.mark.parametrize("xr", [PAUSED, GOING, GONE])
async def test_nothing_begins_where_no_xr_composes(xr: Any) -> None:
    world = await overdue_world()
    world.cluster.xr = xr

    await world.tick_until_quiet()

    assert reason_of(world) == "RegistrationTimeout"
    assert world.resource.recreating_since is None


async def test_an_orphan_is_left_alone() -> None:
    world = await overdue_world()
    del world.raw["metadata"]["ownerReferences"]

    await world.tick_until_quiet()

    assert world.resource.recreating_since is None
    assert is_true(world.status, ConditionType.ORPHANED)


async def test_a_paused_record_is_left_alone() -> None:
    world = await overdue_world()
    world.raw["metadata"]["annotations"] = {names.PAUSED: "true"}

    await world.tick_until_quiet()

    assert world.resource.recreating_since is None


async def test_a_refused_declaration_puts_it_off() -> None:
    world = await overdue_world()
    world.raw["spec"]["declaration"]["parameters"] = {"region": 7}

    await world.tick_until_quiet()

    assert world.resource.recreating_since is None
    assert reason_of(world) == "RegistrationTimeout"


async def test_an_xr_paused_in_mid_recreation_is_waited_for() -> None:
    world = await overdue_world()
    await world.tick()
    world.cluster.xr = PAUSED

    again = await world.tick()

    assert again is not None
    assert world.status["substrate"] == "Absent"
    assert "delete substrate" not in world.cluster.journal
    world.cluster.xr = ALIVE
    await world.tick_until_quiet()
    assert (world.resource.phase, world.resource.generation) == (Phase.ENROLLING, 2)


@pytest.mark.parametrize("after", range(1, 6))
async def test_a_freeze_stops_a_recreation_at_any_step(after: int) -> None:
    world = await overdue_world(silent=True)
    world.fuse.after = world.fuse.burnt + after
    with contextlib.suppress(CrashError):  # An event that is lost ends no tick.
        await world.tick()
    before = _reached(world)
    since = world.resource.recreating_since

    world.steady = False
    again = [await world.tick() for _ in range(2)]
    frozen = _reached(world)
    world.steady = True
    await world.tick_until_quiet()

    assert since is not None
    assert None not in again
    assert frozen == before
    assert world.resource.recreating_since is None
    assert world.resource.generation == 2


async def test_no_recreation_begins_while_frozen() -> None:
    world = await overdue_world()
    world.steady = False

    await world.tick_until_quiet()

    assert world.resource.recreating_since is None
    assert world.resource.recreations == 0


def _reached(world: World) -> Any:
    """Return what a recreation would change next: tokens, nodes, machine, and its row."""
    store = world.store
    return copy.deepcopy((store.tokens, store.nodes, world.cluster.objects, world.resource))


async def test_a_lost_substrate_is_not_taken_for_a_recreation() -> None:
    world = await overdue_world(silent=True)
    world.cluster.objects.clear()
    world.raw["spec"]["observed"] = {"exists": False}

    for _ in range(3):
        await world.tick()

    assert reason_of(world) == "SubstrateLost"
    assert world.resource.recreating_since is None


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_of_a_recreation_changes_nothing(
    after: int, *, silent: bool
) -> None:
    world = await overdue_world(silent=silent)
    world.fuse.after = world.fuse.burnt + after
    old = uid_of(world)

    await world.tick_until_quiet()
    world.register()
    await world.tick_until_quiet()

    resource = world.resource
    assert (resource.phase, resource.recreations) == (Phase.READY, 1)
    assert resource.recreating_since is None
    assert uid_of(world) != old
    assert audit_of(world) == ["recreate"]
    assert world.cluster.journal.count("crossplane drops substrate") == 1
    assert [event.reason for event in world.cluster.events].count("Recreating") == 2
    assert len([node for node in world.store.nodes.values() if node.deregistered_at is None]) == 1
    assert resource.generation <= 3


@pytest.mark.parametrize("silent", [False, True])
async def test_the_crash_cases_cover_every_effect_of_a_recreation(*, silent: bool) -> None:
    world = await overdue_world(silent=silent)
    before = world.fuse.burnt

    await world.tick_until_quiet()
    world.register()
    await world.tick_until_quiet()

    assert world.fuse.burnt - before <= EFFECTS_MAX


@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_record_deleted_in_mid_recreation_is_torn_down_from_any_step(after: int) -> None:
    world = await overdue_world()
    world.fuse.after = world.fuse.burnt + after
    for _ in range(12):
        try:
            await world.tick()
        except CrashError:
            break
        world.react()

    world.store.clock.advance(RESTART)
    world.delete(xr=GONE)
    for _ in range(12):
        await world.tick()
        world.react()
        world.store.clock.advance(RESTART)

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert world.cluster.objects == {}
    assert all(row.spent for row in world.store.tokens.values())
    assert audit_of(world).count("unreleased-substrate-gone") == 0


async def test_ticking_twice_in_mid_recreation_writes_nothing() -> None:
    world = await overdue_world()
    await world.tick()
    before = (list(world.cluster.journal), world.resource.version)

    await world.tick()

    assert (world.cluster.journal, world.resource.version) == before


async def test_what_an_enrolled_machine_holds_stays() -> None:
    world = make_world(EnrolledWorld, policy="Recreate")
    assert isinstance(world, EnrolledWorld)
    world.compose_network()
    await world.tick_until_quiet()
    world.store.clock.advance(TIMEOUT)

    await world.tick_until_quiet()

    network = world.network()
    assert network is not None
    assert (network.uid, network.held, network.released) == ("network-1", True, False)
    assert (world.resource.generation, world.resource.recreations) == (2, 1)
    assert _siblings(world.resource) == ["net"]


def _siblings(resource: ProvisionedResource) -> list[str]:
    return [item.reference.name for item in resource.protected[1:]]


async def test_what_was_there_before_its_record_is_not_recreated() -> None:
    world = make_world(EnrolledWorld, policy="Recreate")
    world.raw["spec"]["substrate"][0]["name"] = "older"
    world.cluster.compose(
        SubstrateReference(api_version="cloud.test/v1", kind="Server", name="older")
    )
    world.raw["spec"]["observed"] = {"exists": True, "ready": True}
    for _ in range(3):
        await world.tick()
    assert world.status["phase"] == "Ready"
    assert world.store.tokens == {}
    world.store.clock.advance(timedelta(days=1))

    for _ in range(3):
        await world.tick()

    assert world.resource.recreating_since is None
    assert world.resource.recreations == 0


async def test_a_standalone_machine_is_not_recreated() -> None:
    world = make_world(policy="Recreate")
    world.raw["spec"]["declaration"]["meshRole"] = "standalone"
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = samples.BLUEPRINT.model_copy(
        update={"mesh_role": MeshRole.STANDALONE}
    )
    await world.tick()
    world.cluster.compose(world.resource.protected[0].reference)
    world.raw["spec"]["observed"] = {"exists": True, "ready": True}
    await world.tick()
    world.store.clock.advance(timedelta(days=1))

    await world.tick()

    assert world.resource.phase is Phase.READY
    assert world.resource.recreating_since is None


async def test_a_recreation_writes_its_record_no_more_often_than_a_birth() -> None:
    world = await overdue_world()
    born = world.cluster.journal.count("write status")

    await world.tick_until_quiet()

    # Each write costs the XR two tokens of its breaker; two more tell the way out and back.
    assert world.cluster.journal.count("write status") - born <= born + 2
