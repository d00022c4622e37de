"""A node that cannot leave the mesh for long: the record stalls, says why, and goes on trying."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType, ObservedCondition, find
from function.contract.strategy import Phase
from reconciler.domain.aggregate.errors import (
    NodeDeregistrationFailedError,
    TokenRevocationFailedError,
)
from reconciler.ports.store.aggregates import MeshRefusedError
from tests.unit.reconciler.app.world import GONE, World

DEADLINE = timedelta(minutes=15)
BEFORE = DEADLINE - timedelta(seconds=1)


async def _ready() -> World:
    world = World()
    await world.until_ready()
    return world


RULE = "nodes.deregistered_at: must satisfy nodes_deregistered_at_check"


def _refuse(monkeypatch: pytest.MonkeyPatch, world: World, call: str) -> None:
    async def refused(_: object) -> None:
        raise MeshRefusedError(rule=RULE)

    deregistration: Any = world.teardown._deregistration
    port = deregistration._tokens if call == "revoke" else deregistration._nodes
    monkeypatch.setattr(port, call, refused, raising=False)


async def _fail(world: World) -> None:
    with pytest.raises((NodeDeregistrationFailedError, TokenRevocationFailedError)):
        await world.tick()


def _said(world: World, kind: ConditionType) -> ObservedCondition:
    said = find(world.status, kind)
    assert said is not None
    return said


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        ("deregister", f"The mesh refused to deregister the node ({RULE});"),
        ("revoke", f"The identity store refused to revoke the bootstrap token ({RULE});"),
    ],
)
async def test_what_fails_past_its_deadline_stalls_the_record_with_the_cause(
    monkeypatch: pytest.MonkeyPatch, call: str, cause: str
) -> None:
    world = await _ready()
    _refuse(monkeypatch, world, call)
    world.delete(xr=GONE)
    await _fail(world)
    world.store.clock.advance(BEFORE)
    await _fail(world)
    assert _said(world, ConditionType.STALLED).status == "False"

    world.store.clock.advance(timedelta(seconds=2))
    await _fail(world)

    for kind in (ConditionType.STALLED, ConditionType.READY):
        said = _said(world, kind)
        assert (said.reason, cause in said.message) == ("DeregistrationOverdue", True)
        assert names.ANNOTATION_FORCE_RELEASE in said.message
    assert _said(world, ConditionType.STALLED).status == "True"
    assert _said(world, ConditionType.RECONCILING).status == "False"
    assert "delete substrate" not in world.cluster.journal


async def test_it_is_said_once_and_not_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await _ready()
    _refuse(monkeypatch, world, "deregister")
    world.delete(xr=GONE)
    await _fail(world)
    world.store.clock.advance(DEADLINE * 2)
    await _fail(world)
    before = list(world.cluster.journal)

    world.store.clock.advance(DEADLINE)
    await _fail(world)

    assert world.cluster.journal == before


async def test_it_is_still_tried_and_the_stall_ends_when_it_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _ready()
    with monkeypatch.context() as mesh:
        _refuse(mesh, world, "deregister")
        world.delete(xr=GONE)
        await _fail(world)
        world.store.clock.advance(DEADLINE * 2)
        await _fail(world)

    await world.tick()
    await world.tick()

    assert _said(world, ConditionType.STALLED).status == "False"
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.DELETED


async def _unreadable(monkeypatch: pytest.MonkeyPatch, call: str) -> World:
    """Return a world whose record is deleted, cannot be read, and whose node does not leave."""
    world = await _ready()
    _refuse(monkeypatch, world, call)
    world.raw["spec"]["declaration"]["provider"] = "mainframe"
    world.delete(xr=GONE)
    await _fail(world)
    world.store.clock.advance(BEFORE)
    await _fail(world)
    return world


@pytest.mark.parametrize("call", ["deregister", "revoke"])
async def test_a_record_that_cannot_be_read_stalls_too(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    world = await _unreadable(monkeypatch, call)
    before = {key: value for key, value in world.status.items() if key != "conditions"}
    registered = _said(world, ConditionType.NODE_REGISTERED)
    assert _said(world, ConditionType.STALLED).status == "False"

    world.store.clock.advance(timedelta(seconds=2))
    await _fail(world)

    for kind in (ConditionType.STALLED, ConditionType.READY):
        assert _said(world, kind).reason == "DeregistrationOverdue"
    stalled = _said(world, ConditionType.STALLED)
    assert (stalled.status, "cannot be read" in stalled.message) == ("True", True)
    assert _said(world, ConditionType.NODE_REGISTERED) == registered
    assert {key: value for key, value in world.status.items() if key != "conditions"} == before
    written = world.cluster.journal.count("write status")
    world.store.clock.advance(DEADLINE)
    await _fail(world)
    assert world.cluster.journal.count("write status") == written


async def test_what_a_record_that_cannot_be_read_says_is_taken_back() -> None:
    with pytest.MonkeyPatch.context() as mesh:
        world = await _unreadable(mesh, "deregister")
        world.store.clock.advance(DEADLINE)
        await _fail(world)
    assert _said(world, ConditionType.STALLED).status == "True"

    await world.tick()

    assert _said(world, ConditionType.STALLED).status == "False"
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer


async def test_a_teardown_of_a_record_that_cannot_be_read_leaves_its_words_alone() -> None:
    world = await _ready()
    world.raw["spec"]["declaration"]["provider"] = "mainframe"
    world.delete(xr=GONE)
    before = copy.deepcopy(world.status)
    assert _said(world, ConditionType.STALLED).status == "False"

    await world.tick()

    assert world.resource.phase is Phase.DEREGISTERING
    assert world.status == before
