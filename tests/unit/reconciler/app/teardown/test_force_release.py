"""Giving a node up on fakes: what is skipped, what is not, and what is remembered of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType, find
from function.contract.strategy import Phase
from reconciler.domain.aggregate.errors import (
    NodeDeregistrationFailedError,
    TokenRevocationFailedError,
)
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.aggregates import MeshRefusedError
from tests.unit.reconciler.app.world import ALIVE, GONE, LEFT, PAUSED, Fuse, World

REASON = "OPS-17: the mesh lost its store"
WAYS = [
    pytest.param(GONE, id="xr-gone"),
    pytest.param(PAUSED, id="xr-paused"),
    pytest.param(LEFT, id="xr-left-by-crossplane"),
    pytest.param(ALIVE, id="xr-alive"),
]
EFFECTS_MAX = 26
"""Effects of the longest forced teardown here."""


class Refusing:
    """A mesh that lets no node go until it is mended."""

    def __init__(self, nodes: Any, *, blind: bool) -> None:
        self._nodes = nodes
        self.mended = False
        self.tries = 0
        self._blind = blind

    async def deregister(self, token: Any) -> None:
        self.tries += 1
        if not self.mended:
            raise MeshRefusedError
        await self._nodes.deregister(token)

    async def node_registered(self, token: Any) -> bool:
        return await self.find_node(token) is not None

    async def find_node(self, token: Any) -> Any:
        if self._blind and not self.mended:
            raise MeshRefusedError
        return await self._nodes.find_node(token)


async def _stuck(
    monkeypatch: pytest.MonkeyPatch, xr: XRFacts = GONE, *, blind: bool = False
) -> tuple[World, Refusing]:
    """Make a terminating record whose node cannot leave."""
    world = World(fuse=Fuse())
    await world.until_ready()
    deregistration: Any = world.teardown._deregistration
    mesh = Refusing(deregistration._nodes, blind=blind)
    monkeypatch.setattr(deregistration, "_nodes", mesh)
    monkeypatch.setattr(deregistration._report, "_nodes", mesh)
    world.delete(xr=xr)
    with pytest.raises(NodeDeregistrationFailedError):
        await world.tick()
    world.cluster.journal.clear()
    return world, mesh


def _annotate(world: World, reason: str) -> None:
    world.raw["metadata"]["annotations"] = {names.ANNOTATION_FORCE_RELEASE: reason}


def _live_nodes(world: World) -> list[Any]:
    return list(world.store.live_nodes(world.resource.id))


@pytest.mark.parametrize("blind", [False, True], ids=["seen", "unknown"])
@pytest.mark.parametrize("xr", WAYS)
async def test_a_node_that_is_given_up_holds_nothing_any_more(
    monkeypatch: pytest.MonkeyPatch, xr: XRFacts, blind: bool
) -> None:
    world, _ = await _stuck(monkeypatch, xr, blind=blind)

    _annotate(world, REASON)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert world.cluster.objects == {}
    assert world.cluster.secrets == {}
    (row,) = world.store.audit
    assert (row.action, row.reason) == ("force-release", REASON)
    assert row.record_name == world.raw["metadata"]["name"]


async def test_its_token_is_revoked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = await _stuck(monkeypatch)
    (token,) = world.store.tokens.values()
    token.consumed_at = None

    _annotate(world, REASON)
    await world.tick_until_quiet()

    assert token.revoked_at is not None


async def test_the_record_and_an_event_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = await _stuck(monkeypatch)

    _annotate(world, REASON)
    await world.tick()

    condition = find(world.status, ConditionType.NODE_REGISTERED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "ForceReleased")
    told = [event for event in world.cluster.events if event.reason == "ForceReleased"]
    assert told
    assert all(event.warning and REASON in event.message for event in told)


@pytest.mark.parametrize("reason", ["", "   ", "x" * 513])
async def test_what_is_no_reason_does_nothing_and_is_said_once(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    world, mesh = await _stuck(monkeypatch)
    _annotate(world, reason)
    for _ in range(2):
        with pytest.raises(NodeDeregistrationFailedError):
            await world.tick()
    before = list(world.cluster.journal)
    with pytest.raises(NodeDeregistrationFailedError):
        await world.tick()

    assert world.cluster.journal == before
    assert world.store.audit == []
    assert world.resource.force_released_at is None
    condition = find(world.status, ConditionType.NODE_REGISTERED)
    assert condition is not None
    assert condition.reason == "ForceReleaseInvalid"
    assert f"metadata.annotations[{names.ANNOTATION_FORCE_RELEASE}]: must" in condition.message
    assert mesh.tries > 2


@pytest.mark.parametrize("xr", [GONE, ALIVE])
@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_leaves_one_entry(
    monkeypatch: pytest.MonkeyPatch, xr: XRFacts, after: int
) -> None:
    world, _ = await _stuck(monkeypatch, xr)
    world.fuse.burnt, world.fuse.after = 0, after

    _annotate(world, REASON)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert [row.action for row in world.store.audit] == ["force-release"]
    assert world.event_types()[-2:] == [
        "broker.ProvisionedResourceDeleting",
        "broker.ProvisionedResourceDeleted",
    ]


@pytest.mark.parametrize("xr", [GONE, ALIVE])
async def test_the_crash_cases_cover_every_effect(
    monkeypatch: pytest.MonkeyPatch, xr: XRFacts
) -> None:
    world, _ = await _stuck(monkeypatch, xr)
    world.fuse.burnt = 0

    _annotate(world, REASON)
    await world.tick_until_quiet()

    assert 10 <= world.fuse.burnt <= EFFECTS_MAX


async def test_it_holds_when_the_annotation_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = await _stuck(monkeypatch)
    _annotate(world, REASON)
    await world.tick()

    world.raw["metadata"]["annotations"] = {}
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED


async def test_it_holds_when_the_record_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = await _stuck(monkeypatch)
    _annotate(world, REASON)
    await world.tick()

    for _ in range(5):
        await world.teardown.run_missing(world.resource)

    assert world.resource.phase is Phase.DELETED
    assert len(world.store.audit) == 1


async def test_a_record_that_is_not_deleted_keeps_its_node() -> None:
    world = World()
    await world.until_ready()

    _annotate(world, REASON)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.READY
    assert world.store.audit == []
    assert _live_nodes(world)


async def test_without_a_node_there_is_nothing_to_skip() -> None:
    world = World()
    await world.tick_until_quiet()

    _annotate(world, REASON)
    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert world.store.audit == []


async def test_at_the_end_the_node_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    world, mesh = await _stuck(monkeypatch)
    _annotate(world, REASON)
    await world.tick()
    assert _live_nodes(world)

    mesh.mended = True
    await world.tick_until_quiet()

    assert _live_nodes(world) == []
    assert world.resource.phase is Phase.DELETED


async def test_a_node_that_stays_is_named_in_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, mesh = await _stuck(monkeypatch)
    tried = mesh.tries
    _annotate(world, REASON)

    with caplog.at_level(logging.WARNING):
        await world.tick_until_quiet()

    assert mesh.tries == tried + 1
    (line,) = [item.message for item in caplog.records if "node_left_in_mesh" in item.message]
    assert str(world.resource.id) in line
    assert len(_live_nodes(world)) == 1


async def test_a_substrate_that_goes_unreleased_under_a_stuck_teardown_is_audited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, mesh = await _stuck(monkeypatch)
    world.cluster.objects.clear()
    mesh.mended = True

    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert [row.action for row in world.store.audit] == ["unreleased-substrate-gone"]


async def test_a_substrate_that_goes_under_a_live_node_is_audited_once() -> None:
    world = World()
    await world.until_ready()
    world.cluster.objects.clear()
    world.raw["spec"]["observed"] = {"exists": False, "ready": False}

    for _ in range(3):
        await world.tick()

    assert [row.action for row in world.store.audit] == ["unreleased-substrate-gone"]
    assert world.resource.phase is Phase.PENDING


@pytest.mark.parametrize("xr", WAYS)
async def test_an_ordered_teardown_is_no_matter_for_the_audit(xr: XRFacts) -> None:
    world = World()
    await world.until_ready()

    world.delete(xr=xr)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert world.store.audit == []


@pytest.mark.parametrize("shown", [False, True], ids=["never-shown", "shown"])
async def test_a_mesh_that_does_not_answer_is_not_taken_for_a_node_that_is_out(
    monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    world, _ = await _stuck(monkeypatch, blind=True)
    if not shown:
        del world.status["node"]
        with pytest.raises(NodeDeregistrationFailedError):
            await world.tick()

    condition = find(world.status, ConditionType.NODE_REGISTERED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "MeshSilent")
    assert ("node" in world.status) == shown


@pytest.mark.parametrize("shown", [False, True], ids=["never-shown", "shown"])
@pytest.mark.parametrize(
    ("wish", "reason"), [(REASON, "ForceReleased"), ("", "ForceReleaseInvalid")]
)
async def test_what_became_of_the_wish_is_said_while_the_mesh_is_silent(
    monkeypatch: pytest.MonkeyPatch, wish: str, reason: str, shown: bool
) -> None:
    world, _ = await _stuck(monkeypatch, blind=True)
    if not shown:
        del world.status["node"]

    _annotate(world, wish)
    if wish:
        await world.tick()
    else:
        with pytest.raises(NodeDeregistrationFailedError):
            await world.tick()

    condition = find(world.status, ConditionType.NODE_REGISTERED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", reason)


@pytest.mark.parametrize("mesh_is", ["blind", "seeing", "without the node"])
async def test_its_event_is_sent_once(monkeypatch: pytest.MonkeyPatch, mesh_is: str) -> None:
    world, mesh = await _stuck(monkeypatch, blind=mesh_is == "blind")
    world.status.pop("node", None)
    sent: list[str] = []
    record_event = world.cluster.record_event

    async def counted(raw: Any, *, reason: str, **said: Any) -> None:
        sent.append(reason)
        await record_event(raw, reason=reason, **said)

    monkeypatch.setattr(world.cluster, "record_event", counted)
    monkeypatch.setattr(world.cluster, "get_object", _there)
    _annotate(world, REASON)
    await world.tick()
    if mesh_is == "without the node":
        for node in _live_nodes(world):
            node.deregistered_at = world.store.clock.now()

    for _ in range(4):
        await world.tick()

    assert sent.count("ForceReleased") == 1
    assert not mesh.mended


async def _there(*_: object) -> LiveObject:
    return LiveObject(uid="substrate-1", terminating=True, released=True)


def _break_revoking(world: World, monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Any]:
    """Let no token be revoked; return what stood in for the tries."""
    tries: list[Any] = []

    async def refused(resource: Any) -> None:
        tries.append(resource)
        raise error

    deregistration: Any = world.teardown._deregistration
    monkeypatch.setattr(deregistration._tokens, "revoke", refused, raising=False)
    return tries


FAILURES = [
    pytest.param(MeshRefusedError(), "refused", id="refused"),
    pytest.param(StoreUnavailableError(), "is unreachable", id="unavailable"),
    pytest.param(TimeoutError(), "is unreachable", id="timeout"),
]


@pytest.mark.parametrize(("error", "words"), FAILURES)
async def test_a_token_that_cannot_be_revoked_is_said_and_stops_everything_else(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    world = World()
    await world.until_ready()
    _break_revoking(world, monkeypatch, error)
    world.delete(xr=GONE)

    for _ in range(2):
        with pytest.raises(TokenRevocationFailedError, match=words):
            await world.tick()

    ready = find(world.status, ConditionType.READY)
    assert ready is not None
    assert ready.reason == "TokenRevocationFailed"
    assert words in ready.message
    assert world.status["phase"] == "Deregistering"
    assert _live_nodes(world)
    before = list(world.cluster.journal)
    with pytest.raises(TokenRevocationFailedError):
        await world.tick()
    assert world.cluster.journal == before


@pytest.mark.parametrize("registered", [False, True], ids=["no-node", "node"])
async def test_a_node_is_given_up_although_its_token_cannot_be_revoked(
    monkeypatch: pytest.MonkeyPatch, registered: bool
) -> None:
    world = World()
    await world.tick_until_quiet()
    if registered:
        world.register()
        await world.tick_until_quiet()
    tries = _break_revoking(world, monkeypatch, MeshRefusedError())
    world.delete(xr=GONE)
    with pytest.raises(TokenRevocationFailedError):
        await world.tick()

    _annotate(world, REASON)
    tried = len(tries)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer
    assert [row.action for row in world.store.audit] == ["force-release"]
    assert len(tries) > tried
    assert _live_nodes(world) == []


async def test_a_token_that_stays_live_is_named_in_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    await world.until_ready()
    _break_revoking(world, monkeypatch, MeshRefusedError())
    world.delete(xr=GONE)
    _annotate(world, REASON)

    with caplog.at_level(logging.WARNING):
        await world.tick_until_quiet()

    (line,) = [item.message for item in caplog.records if "token_left_live" in item.message]
    assert str(world.resource.id) in line


async def test_a_token_whose_state_is_not_told_hides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    await world.until_ready()
    report: Any = world.teardown._report
    shown = world.status["bootstrap"]["state"]

    async def silent(_: object) -> None:
        raise StoreUnavailableError

    monkeypatch.setattr(report._tokens, "state", silent, raising=False)
    _break_revoking(world, monkeypatch, StoreUnavailableError())
    world.delete(xr=GONE)
    with pytest.raises(TokenRevocationFailedError):
        await world.tick()

    assert world.status["bootstrap"]["state"] == shown
    ready = find(world.status, ConditionType.READY)
    assert ready is not None
    assert ready.reason == "TokenRevocationFailed"
