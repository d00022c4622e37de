"""Resources of somebody else's Composition: admitted, drained, and their siblings let go."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from function.contract.conditions import ConditionType, find, is_true
from function.contract.record import SubstrateReference, wire
from function.contract.strategy import Phase
from reconciler.app.protection.sibling_hold import AGAIN_S
from reconciler.app.status import publishing, waiting_messages
from reconciler.domain.teardown.release import XRFacts
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld, record
from tests.unit.reconciler.app.world import ALIVE, GOING, GONE, LEFT, PAUSED, Fuse, World

EFFECTS_MAX = 24
"""Effects of the longest life and teardown here."""

VOLUME = SubstrateReference(api_version="cloud.test/v1", kind="Volume", name="vol")
LET_GO = "let go Network net"
DELETED = "delete Network net"


def _world(**given: Any) -> EnrolledWorld:
    return EnrolledWorld(raw=record(), **given)


async def _ready(**given: Any) -> EnrolledWorld:
    world = _world(**given)
    await world.until_ready()
    world.compose_network()
    world.cluster.journal.clear()
    return world


def _reason(world: World, condition: ConditionType) -> str:
    found = find(world.status, condition)
    return "" if found is None else found.reason


def _held(world: EnrolledWorld) -> bool:
    network = world.network()
    return network is not None and network.held


def _free(world: EnrolledWorld) -> bool:
    network = world.network()
    return network is not None and not network.held


async def test_it_is_admitted_without_blueprint_and_provider_config() -> None:
    world = _world()

    await world.tick()

    assert is_true(world.status, ConditionType.ADMITTED)
    assert world.cluster.provider_configs == {}
    assert "providerConfigRef" not in world.status
    assert len(world.cluster.secrets) == 1


async def test_what_it_protects_is_stored_before_anything_may_be_composed() -> None:
    world = _world()

    await world.tick()

    substrate, network = world.resource.protected
    assert substrate.reference.name == world.resource.xr_name
    assert (network.reference, network.sibling) == (samples.NETWORK, True)
    assert world.cluster.objects == {}


@pytest.mark.parametrize(
    ("api", "kind", "verb"),
    [
        ("cloud.test/v1", "Server", "delete"),
        ("cloud.test/v1", "Network", "patch"),
        ("platform.test/v1", "Pool", "get"),
    ],
)
async def test_what_could_not_be_torn_down_is_not_admitted(api: str, kind: str, verb: str) -> None:
    world = _world()
    world.cluster.forbidden = {(api, kind, verb)}

    again = await world.tick()

    found = find(world.status, ConditionType.ADMITTED)
    assert found is not None
    assert (found.status, found.reason) == ("False", "RightsMissing")
    assert f"lacks the right to {verb} {kind} in {api}" in found.message
    assert world.store.resources == {}
    assert again is not None
    world.cluster.forbidden = set()
    await world.tick()
    assert is_true(world.status, ConditionType.ADMITTED)


@pytest.mark.parametrize("namespaced", [None, False], ids=["not-served", "cluster-scoped"])
async def test_a_kind_that_cannot_be_composed_is_not_admitted(namespaced: bool | None) -> None:
    world = _world()
    kinds = {("cloud.test/v1", "Server"): True, ("platform.test/v1", "Pool"): True}
    if namespaced is not None:
        kinds["cloud.test/v1", "Network"] = namespaced
    world.cluster.kinds = kinds

    await world.tick()

    assert _reason(world, ConditionType.ADMITTED) == "UnsupportedKind"
    assert world.store.resources == {}


async def test_passing_phases_cost_the_xr_no_write() -> None:
    world = _world()

    await world.until_ready()

    assert world.cluster.journal.count("write status") == 2


async def test_a_phase_that_lasts_is_told() -> None:
    world = _world()
    await world.tick()
    world.react()
    world.raw["spec"]["observed"]["ready"] = False
    again = await world.tick()
    assert world.status["phase"] == "Pending"
    assert again is not None

    world.store.clock.advance(timedelta(seconds=publishing.PATIENCE_S))
    await world.tick()

    assert world.status["phase"] == "Provisioning"


class TestThereFirst:
    async def _older(self) -> EnrolledWorld:
        world = _world()
        world.raw["spec"]["substrate"][0]["name"] = "older"
        world.cluster.compose(samples.SERVER.model_copy(update={"name": "older"}))
        world.raw["spec"]["observed"] = {"exists": True, "ready": True}
        await world.tick_until_quiet()
        return world

    async def test_it_gets_no_token_and_is_ready_by_its_substrate_alone(self) -> None:
        world = await self._older()

        assert world.resource.phase is Phase.READY
        assert world.resource.generation == 0
        assert world.store.tokens == {}
        assert _reason(world, ConditionType.NODE_REGISTERED) == "NotInjected"
        assert is_true(world.status, ConditionType.READY)

    async def test_it_stays_ready_where_the_function_sees_nothing_yet(self) -> None:
        world = await self._older()
        world.raw["spec"]["observed"] = {"exists": False}

        await world.tick()

        assert world.resource.phase is Phase.READY
        assert world.store.tokens == {}

    async def test_made_anew_it_is_a_node(self) -> None:
        world = await self._older()
        world.cluster.objects.clear()
        world.raw["spec"]["observed"] = {"exists": False}

        await world.tick_until_quiet()
        world.register()
        await world.tick_until_quiet()

        assert world.resource.generation == 1
        assert _reason(world, ConditionType.NODE_REGISTERED) == "Registered"


class TestDrain:
    async def test_it_is_a_deletion_whose_finalizer_waits_for_the_function(self) -> None:
        world = await _ready()

        world.drain()
        await world.tick_until_quiet()

        assert world.resource.phase is Phase.DELETED
        assert world.finalizer
        journal = world.cluster.journal
        out = journal.index("event NodeDeregistered")
        assert out < journal.index("release") < journal.index("crossplane drops substrate")
        assert world.event_types()[-2:] == [
            "broker.ProvisionedResourceDeleting",
            "broker.ProvisionedResourceDeleted",
        ]

        world.drop_record()
        await world.tick_until_quiet()

        assert not world.finalizer

    async def test_it_takes_one_write_until_the_record_terminates(self) -> None:
        world = await _ready()

        world.drain()
        while world.status.get("substrate") != "Absent":
            await world.tick()

        assert world.cluster.journal.count("write status") == 1

    async def test_one_that_was_never_accepted_lets_the_function_go_on(self) -> None:
        world = _world()
        world.catalog.projects.clear()
        await world.tick()
        world.raw["spec"]["drain"] = True

        await world.tick()

        assert world.status["substrate"] == "Absent"
        assert world.finalizer
        world.raw["spec"]["released"] = True
        world.drop_record()
        await world.tick()
        assert not world.finalizer

    async def test_what_grows_again_under_its_name_is_another_one(self) -> None:
        world = await _ready()
        world.drain()
        await world.tick_until_quiet()
        world.drop_record()
        await world.tick_until_quiet()
        old = world.resource.id

        successor = EnrolledWorld(store=world.store, cluster=world.cluster, raw=record())
        successor.raw["metadata"]["uid"] = "record-2"
        world.store.clock.advance(timedelta(seconds=1))
        await successor.tick()

        assert successor.resource.id != old
        assert successor.status["phase"] == "Pending"

    @pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
    async def test_a_crash_after_any_effect_changes_nothing(self, after: int) -> None:
        world = await _ready()
        world.fuse.burnt, world.fuse.after = 0, after

        world.drain()
        await world.tick_until_quiet()
        world.drop_record()
        await world.tick_until_quiet()

        assert world.resource.phase is Phase.DELETED
        assert not world.finalizer
        assert _free(world)
        assert world.cluster.journal.count("crossplane drops substrate") == 1


LEFT_BEHIND = [
    pytest.param(GONE, id="xr-gone"),
    pytest.param(LEFT, id="xr-left-by-crossplane"),
]


class TestSiblings:
    @pytest.mark.parametrize("xr", LEFT_BEHIND)
    async def test_what_the_xr_left_behind_goes_after_the_substrate(self, xr: XRFacts) -> None:
        world = await _ready()

        world.delete(xr=xr)
        await world.tick_until_quiet()

        journal = world.cluster.journal
        order = ["event NodeDeregistered", "delete substrate", LET_GO, DELETED, "remove finalizer"]
        assert [item for item in journal if item in order] == order
        assert world.network() is None

    async def test_what_a_living_xr_composes_loses_its_hold_and_stays(self) -> None:
        world = await _ready()

        world.delete(xr=ALIVE)
        await world.tick_until_quiet()

        assert _free(world)
        assert DELETED not in world.cluster.journal

    async def test_what_nobody_controls_stays(self) -> None:
        world = await _ready()
        world.cluster.compose(samples.NETWORK, uid="network-1")

        world.delete(xr=GONE)
        await world.tick_until_quiet()

        assert _free(world)

    async def test_another_node_that_needs_it_keeps_it(self) -> None:
        world = await _ready()
        other = EnrolledWorld(store=world.store, cluster=world.cluster, raw=record("other"))
        await other.tick()

        world.delete(xr=GONE)
        for _ in range(6):
            await world.tick()

        assert not world.finalizer
        assert _held(world)

        other.delete(xr=GONE)
        await other.tick_until_quiet()

        assert world.network() is None

    async def test_a_hold_that_a_late_run_puts_on_again_comes_off(self) -> None:
        world = await _ready()
        world.delete(xr=ALIVE)
        await world.tick_until_quiet()
        world.compose_network()

        again = await world.teardown.part(world.resource.id)

        assert again == AGAIN_S
        assert _free(world)
        assert len(await world.unsettled()) == 1
        world.store.clock.advance(timedelta(seconds=waiting_messages.PIPELINE_S + 1))
        assert await world.teardown.part(world.resource.id) is None
        assert await world.unsettled() == []

    async def test_one_that_is_free_is_looked_after_while_a_run_may_hold_it_again(self) -> None:
        world = await _ready()
        world.store.clock.advance(timedelta(hours=1))
        world.delete(xr=ALIVE)
        await world.tick_until_quiet()
        assert _free(world)

        world.store.clock.advance(timedelta(seconds=waiting_messages.PIPELINE_S))
        again = await world.teardown.part(world.resource.id)
        world.store.clock.advance(timedelta(seconds=1))

        assert again == AGAIN_S
        assert await world.teardown.part(world.resource.id) is None

    async def test_one_that_goes_already_is_not_deleted_again(self) -> None:
        world = await _ready()
        ((key, live),) = ((k, v) for k, v in world.cluster.objects.items() if k[1] == "Network")
        world.cluster.objects[key] = replace(live, terminating=True)

        world.delete(xr=GONE)
        await world.tick_until_quiet()

        assert _free(world)
        assert DELETED not in world.cluster.journal
        assert not world.finalizer

    async def test_while_crossplane_may_compose_nothing_is_deleted(self) -> None:
        world = await _ready()
        world.delete(xr=PAUSED)
        await world.tick_until_quiet()
        assert world.network() is not None

        world.cluster.xr = GOING
        await world.teardown.part(world.resource.id)

        assert world.network() is not None
        world.cluster.xr = GONE
        await world.teardown.part(world.resource.id)
        assert world.network() is None

    async def test_what_was_listed_last_is_let_go_even_if_it_was_never_accepted(self) -> None:
        world = await _ready()
        world.cluster.compose(VOLUME, uid="volume-1")
        world.raw["spec"]["substrate"].append(wire(VOLUME))

        world.delete(xr=GONE)
        await world.tick_until_quiet()

        assert "let go Volume vol" in world.cluster.journal
        assert world.resource.protected[-1].reference == VOLUME

    async def test_what_is_listed_later_is_remembered(self) -> None:
        world = await _ready()
        world.raw["spec"]["substrate"].append(wire(VOLUME))

        await world.tick()

        assert [item.reference for item in world.resource.protected[1:]] == [
            samples.NETWORK,
            VOLUME,
        ]

    async def test_what_is_listed_later_without_rights_is_refused_until_they_come(self) -> None:
        world = await _ready()
        world.cluster.forbidden = {("cloud.test/v1", "Volume", "delete")}
        world.raw["spec"]["substrate"].append(wire(VOLUME))

        await world.tick()
        again = await world.tick()

        assert _reason(world, ConditionType.ADMITTED) == "RightsMissing"
        assert world.resource.phase is Phase.READY
        assert again is not None
        world.cluster.forbidden = set()
        await world.tick()
        assert is_true(world.status, ConditionType.ADMITTED)

    async def test_what_is_listed_no_longer_is_forgotten_once_it_is_free(self) -> None:
        world = await _ready()
        for node in world.store.nodes.values():
            node.reported_at = world.store.clock.now()
        del world.raw["spec"]["substrate"][1:]

        again = await world.tick()

        assert again == AGAIN_S
        assert LET_GO in world.cluster.journal
        assert [item.sibling for item in world.resource.protected] == [False, True]
        assert await world.tick() is None
        assert [item.sibling for item in world.resource.protected] == [False]
        assert world.network() is not None

    async def test_rights_that_were_taken_away_are_said_on_the_record(self) -> None:
        world = await _ready()
        world.cluster.forbidden = {("cloud.test/v1", "Network", "patch")}

        world.delete(xr=GONE)
        for _ in range(6):
            await world.tick()

        assert _reason(world, ConditionType.READY) == "RightsMissing"
        assert "remove finalizer" not in world.cluster.journal
        world.cluster.forbidden = set()
        await world.tick_until_quiet()
        assert not world.finalizer
        assert world.network() is None


async def test_a_second_credential_user_keeps_no_provider_config() -> None:
    declared = World()
    await declared.until_ready()
    raw = record()
    raw["spec"]["declaration"]["cloudCredential"] = "demo-main"
    enrolled = EnrolledWorld(store=declared.store, cluster=declared.cluster, raw=raw)
    declared.store.clock.advance(timedelta(seconds=1))
    await enrolled.tick()
    assert len(declared.store.resources) == 2

    declared.delete(xr=GONE)
    for _ in range(6):
        await declared.tick()

    assert declared.cluster.provider_configs == {}
    assert is_true(enrolled.status, ConditionType.ADMITTED)


@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_of_a_teardown_leaves_no_sibling(after: int) -> None:
    world = await _ready(fuse=Fuse())
    world.fuse.burnt, world.fuse.after = 0, after

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert world.network() is None


async def test_an_edit_of_what_makes_it_the_same_node_leaves_the_accepted_one() -> None:
    world = await _ready()
    accepted = copy.deepcopy(world.status["accepted"])
    world.raw["spec"]["substrate"][0]["kind"] = "Instance"

    await world.tick()

    assert _reason(world, ConditionType.ADMITTED) == "Immutable"
    assert world.status["accepted"] == accepted
    assert world.resource.protected[0].reference.kind == "Server"


async def test_a_record_that_a_late_run_made_of_an_earlier_one_is_not_accepted() -> None:
    world = _world()
    world.raw["spec"] |= {"released": True, "observed": {"exists": True, "ready": True}}
    world.raw["spec"]["substrate"][0]["name"] = "pr-of-the-earlier-one"

    again = await world.tick()

    assert again is not None
    assert world.store.resources == {}
    world.raw["spec"] = record()["spec"]
    await world.tick()
    assert world.resource.protected[0].reference.name == world.resource.xr_name
