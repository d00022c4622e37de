"""The ordered teardown on fakes: who deletes, in which order, over a crash after every effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType, find
from function.contract.strategy import Phase
from reconciler.app.status import waiting_messages
from reconciler.domain.aggregate.errors import NodeDeregistrationFailedError
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.substrates import KindNotServedError, NotAllowedError
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import ALIVE, GOING, GONE, LEFT, PAUSED, Fuse, World

EFFECTS_MAX = 28
"""Effects of the longest teardown here, calls that find nothing to do included."""

WAYS = [
    pytest.param(GONE, "delete substrate", id="xr-gone"),
    pytest.param(PAUSED, "delete substrate", id="xr-paused"),
    pytest.param(LEFT, "delete substrate", id="xr-left-by-crossplane"),
    pytest.param(ALIVE, "crossplane drops substrate", id="xr-alive"),
]


async def _ready(*, fuse: Fuse | None = None) -> World:
    world = World(fuse=fuse or Fuse())
    await world.until_ready()
    world.cluster.journal.clear()
    return world


def _cut_the_mesh_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ports: Any = world.teardown._ports

    async def unreachable(_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(ports.nodes, "deregister", unreachable, raising=False)


def _position(journal: list[str], effect: str) -> int:
    assert journal.count(effect) == 1, journal
    return journal.index(effect)


@pytest.mark.parametrize(("xr", "deletion"), WAYS)
async def test_the_node_goes_before_the_substrate(xr: XRFacts, deletion: str) -> None:
    world = await _ready()

    world.delete(xr=xr)
    await world.tick_until_quiet()

    journal = world.cluster.journal
    assert _position(journal, "event NodeDeregistered") < _position(journal, deletion)
    assert _position(journal, deletion) < _position(journal, "remove finalizer")
    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert world.cluster.objects == {}


@pytest.mark.parametrize(("xr", "deletion"), WAYS)
async def test_a_node_that_never_came_loses_its_token_first(xr: XRFacts, deletion: str) -> None:
    world = World()
    await world.tick_until_quiet()
    world.react()
    await world.tick_until_quiet()

    world.delete(xr=xr)
    await world.tick_until_quiet()

    (token,) = world.store.tokens.values()
    assert token.revoked_at is not None
    assert world.cluster.secrets == {}
    assert world.resource.phase is Phase.DELETED
    assert _position(world.cluster.journal, deletion) >= 0


async def test_the_annotation_comes_before_the_wish() -> None:
    world = await _ready()

    world.delete(xr=ALIVE)
    await world.tick()
    await world.tick()

    assert "release" in world.cluster.journal
    assert world.status["substrate"] == "Absent"
    released = world.cluster.journal.index("release")
    assert "write status" in world.cluster.journal[released:]


async def test_nobody_deletes_while_crossplane_may_be_composing() -> None:
    world = await _ready()

    world.delete(xr=GOING)
    await world.tick_until_quiet()

    condition = find(world.status, ConditionType.READY)
    assert condition is not None
    assert condition.reason == "WaitingForCrossplane"
    assert world.status["substrate"] == "Present"
    assert "delete substrate" not in world.cluster.journal
    world.cluster.xr = GONE
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.DELETED


@pytest.mark.parametrize("xr", [GONE, PAUSED, LEFT])
async def test_a_substrate_that_goes_already_is_not_deleted_again(xr: XRFacts) -> None:
    world = await _ready()
    ((key, live),) = world.cluster.objects.items()
    world.cluster.objects[key] = replace(live, terminating=True)

    world.delete(xr=xr)
    await world.tick_until_quiet()

    before = world.resource.phase
    del world.cluster.objects[key]
    await world.tick_until_quiet()

    assert (before, world.resource.phase) == (Phase.DEPROVISIONING, Phase.DELETED)
    assert "delete substrate" not in world.cluster.journal


async def test_a_mesh_that_cannot_be_reached_stops_everything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _ready()
    world.delete(xr=GONE)
    _cut_the_mesh_off(world, monkeypatch)
    with pytest.raises(NodeDeregistrationFailedError, match="mesh is unreachable"):
        await world.tick()

    assert "delete substrate" not in world.cluster.journal
    condition = find(world.status, ConditionType.READY)
    assert condition is not None
    assert condition.reason == "NodeDeregistrationFailed"


async def test_a_provider_config_stays_while_a_sibling_uses_it() -> None:
    world = await _ready()
    sibling = World(store=world.store, cluster=world.cluster)
    sibling.raw["metadata"].update({"name": "web-2-abc", "uid": "record-2"})
    sibling.raw["spec"]["declaration"]["xr"] = {
        **sibling.raw["spec"]["declaration"]["xr"],
        "name": "web-2",
    }
    await sibling.tick()
    assert len(world.store.resources) == 2

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert "delete provider config" not in world.cluster.journal
    assert world.cluster.records_in[world.raw["metadata"]["namespace"]] == 1


async def test_the_last_one_releases_provider_config_and_namespace() -> None:
    world = await _ready()

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.cluster.provider_configs == {}
    assert world.cluster.records_in[world.raw["metadata"]["namespace"]] == 0


async def test_a_record_that_was_never_accepted_goes_at_once() -> None:
    world = World()
    world.catalog.projects.clear()
    await world.tick()

    world.delete(xr=GONE)
    await world.tick()

    assert not world.finalizer
    assert world.store.resources == {}


async def test_a_vanished_record_is_waited_for_while_its_xr_lives() -> None:
    world = await _ready()
    world.cluster.xr = ALIVE

    again = await world.teardown.run_missing(world.resource)

    assert again is not None
    assert world.resource.deletion_requested_at is None


async def test_a_vanished_record_without_an_xr_is_drained() -> None:
    world = await _ready()
    world.cluster.xr = GONE

    for _ in range(5):
        await world.teardown.run_missing(world.resource)

    assert world.resource.phase is Phase.DELETED
    assert world.cluster.objects == {}
    assert [node.deregistered_at is not None for node in world.store.nodes.values()] == [True]


@pytest.mark.parametrize(("xr", "deletion"), WAYS)
@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_of_teardown_changes_nothing(
    xr: XRFacts, deletion: str, after: int
) -> None:
    world = await _ready()
    world.fuse.burnt, world.fuse.after = 0, after

    world.delete(xr=xr)
    await world.tick_until_quiet()

    journal = world.cluster.journal
    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert world.cluster.objects == {}
    assert world.cluster.secrets == {}
    assert [node.deregistered_at is not None for node in world.store.nodes.values()] == [True]
    assert world.event_types()[-2:] == [
        "broker.ProvisionedResourceDeleting",
        "broker.ProvisionedResourceDeleted",
    ]
    assert journal.count(deletion) == 1


@pytest.mark.parametrize("xr", [GONE, ALIVE])
async def test_the_crash_cases_cover_every_effect(xr: XRFacts) -> None:
    world = await _ready()
    world.fuse.burnt = 0

    world.delete(xr=xr)
    await world.tick_until_quiet()

    assert 10 <= world.fuse.burnt <= EFFECTS_MAX


async def test_a_substrate_that_a_run_in_flight_may_create_is_waited_for() -> None:
    world = World()
    await world.tick()
    world.delete(xr=GOING)

    await world.tick()
    await world.tick()

    assert world.finalizer
    assert world.status["phase"] == "Deprovisioning"
    assert world.status["substrate"] == "Present"
    world.cluster.compose(samples.SUBSTRATE.model_copy(update={"name": world.resource.xr_name}))
    world.cluster.xr = GONE
    await world.tick_until_quiet()
    assert world.cluster.objects == {}
    assert world.resource.phase is Phase.DELETED


async def test_while_the_xr_composes_the_function_must_have_seen_that_it_must_stop() -> None:
    world = World()
    await world.tick()
    world.delete(xr=ALIVE)

    await world.tick()
    await world.tick()

    assert world.status["substrate"] == "Absent"
    assert world.finalizer
    world.raw["spec"]["released"] = True
    await world.tick()
    assert not world.finalizer


async def test_a_paused_record_that_is_deleted_loses_its_token_and_nothing_else() -> None:
    world = World()
    await world.tick()
    world.raw["metadata"]["annotations"] = {names.PAUSED: "true"}
    world.delete(xr=GONE)

    await world.tick()

    (token,) = world.store.tokens.values()
    assert token.revoked_at is not None
    assert world.finalizer


async def test_an_unreadable_record_that_is_deleted_goes_in_order_too() -> None:
    world = await _ready()
    world.raw["spec"]["declaration"]["provider"] = "mainframe"
    world.delete(xr=GONE)

    for _ in range(5):
        await world.tick()

    journal = world.cluster.journal
    assert _position(journal, "delete substrate") < _position(journal, "remove finalizer")
    assert world.resource.phase is Phase.DELETED


async def test_a_failed_deregistration_is_said_once_and_not_rewritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _ready()
    world.delete(xr=GONE)
    _cut_the_mesh_off(world, monkeypatch)
    for _ in range(2):
        with pytest.raises(NodeDeregistrationFailedError):
            await world.tick()
    before = list(world.cluster.journal)

    with pytest.raises(NodeDeregistrationFailedError):
        await world.tick()

    assert world.cluster.journal == before


@pytest.mark.parametrize("late", [timedelta(), timedelta(minutes=5)], ids=["soon", "late"])
async def test_a_refused_deletion_of_the_substrate_is_said_once_and_not_rewritten(
    monkeypatch: pytest.MonkeyPatch, late: timedelta
) -> None:
    world = await _ready()

    async def refused(*_: object, **__: object) -> None:
        message = "cannot delete XGenericVM 'pr-1': this one stays"
        raise NotAllowedError(message)

    monkeypatch.setattr(world.cluster, "delete_object", refused)
    world.delete(xr=GONE)
    await world.tick_until_quiet()
    world.store.clock.advance(late)
    await world.tick()
    world.cluster.journal.clear()

    for _ in range(3):
        await world.tick()

    assert find(world.status, ConditionType.READY).reason == "RightsMissing"  # type: ignore[union-attr]  # absent fails the test
    assert "write status" not in " ".join(world.cluster.journal)


async def test_a_clock_that_lags_does_not_hold_a_deletion_up() -> None:
    world = await _ready()
    world.store.clock.advance(timedelta(hours=-1))

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED


def test_a_going_substrate_is_polled_ever_more_slowly() -> None:
    waits = [waiting_messages.poll_interval_s(seconds) for seconds in (0, 10, 60, 3600)]

    assert waits == sorted(waits)
    assert waits[0] == waiting_messages.POLL_FIRST_S
    assert waits[-1] == waiting_messages.POLL_MAX_S


UNSERVED = KindNotServedError("cannot look up XGenericVM: g/v1alpha1 is not served")
FORBIDDEN = NotAllowedError("cannot get XGenericVM 'pr-1' in g/v1alpha1")


def _blind(world: World, monkeypatch: pytest.MonkeyPatch, call: str, error: Exception) -> None:
    async def blind(*_: object) -> None:
        raise error

    monkeypatch.setattr(world.cluster, call, blind)


@pytest.mark.parametrize("call", ["get_object", "get_xr_facts", "is_composite"])
@pytest.mark.parametrize("error", [UNSERVED, FORBIDDEN, RuntimeError("500: no conversion webhook")])
async def test_a_node_leaves_the_mesh_whatever_can_be_read_of_its_substrate(
    monkeypatch: pytest.MonkeyPatch, call: str, error: Exception
) -> None:
    world = await _ready()
    _blind(world, monkeypatch, call, error)

    world.delete(xr=GONE)
    await world.tick()

    assert [node.deregistered_at is not None for node in world.store.nodes.values()] == [True]
    assert world.finalizer


@pytest.mark.parametrize(
    ("error", "reason"), [(UNSERVED, "KindNotServed"), (FORBIDDEN, "RightsMissing")]
)
@pytest.mark.parametrize("call", ["get_object", "get_xr_facts"])
async def test_what_cannot_be_looked_at_is_not_taken_for_gone_and_the_record_says_so(
    monkeypatch: pytest.MonkeyPatch, call: str, error: Exception, reason: str
) -> None:
    world = await _ready()
    _blind(world, monkeypatch, call, error)

    world.delete(xr=GONE)
    again = [await world.tick() for _ in range(4)][-1]

    assert again is not None
    assert world.finalizer
    assert world.resource.phase is Phase.DEPROVISIONING
    for kind in (ConditionType.READY, ConditionType.SUBSTRATE_DELETED):
        condition = find(world.status, kind)
        assert condition is not None
        assert condition.reason == reason
        assert str(error) in condition.message


async def test_a_vanished_record_whose_kind_is_not_served_holds_no_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _ready()
    world.cluster.xr = GONE
    await world.teardown.run_missing(world.resource)
    _blind(world, monkeypatch, "get_object", UNSERVED)

    with pytest.raises(KindNotServedError):
        await world.teardown.run_missing(world.resource)

    assert [node.deregistered_at is not None for node in world.store.nodes.values()] == [True]
    assert world.resource.phase is Phase.DEPROVISIONING


async def test_the_end_of_a_forged_record_under_another_name_ends_no_node() -> None:
    world = await _ready()
    forged = World(store=world.store, cluster=world.cluster)
    forged.raw["metadata"].update({"name": "web-1-forged", "uid": "record-2"})
    forged.delete(xr=ALIVE)

    await forged.tick()

    assert world.resource.deletion_requested_at is None
    assert [node.deregistered_at for node in world.store.nodes.values()] == [None]
    assert not forged.finalizer


async def test_a_vanished_record_whose_xr_terminates_is_drained() -> None:
    world = await _ready()
    world.cluster.xr = GOING

    await world.teardown.run_missing(world.resource)

    assert world.resource.deletion_requested_at is not None
    assert [node.deregistered_at is not None for node in world.store.nodes.values()] == [True]


async def test_absence_of_a_vanished_ones_substrate_is_believed_once_no_run_may_make_it() -> None:
    world = World()
    await world.tick()
    world.cluster.xr = GOING

    for _ in range(3):
        await world.teardown.run_missing(world.resource)
    waiting = world.resource.phase
    world.cluster.xr = GONE
    await world.teardown.run_missing(world.resource)

    assert (waiting, world.resource.phase) == (Phase.DEPROVISIONING, Phase.DELETED)
