"""The gate before everything that is given out, in every state that a record can be in."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from function.contract.strategy import Phase
from tests.unit.reconciler.app.replacement_world import (
    make_world,
    overdue_world,
    reason_of,
    waiting_world,
)
from tests.unit.reconciler.app.world import CrashError, World

TICKS = 4


async def _fresh() -> World:
    return World()


async def _delivered() -> World:
    world = World()
    await world.tick()
    return world


async def _expired() -> World:
    world = await _delivered()
    world.store.clock.advance(timedelta(hours=2))
    return world


async def _undelivered() -> World:
    world = await _delivered()
    world.cluster.secrets.clear()
    world.store.clock.advance(timedelta(minutes=1))
    return world


async def _without_provider_config() -> World:
    world = await _delivered()
    world.cluster.provider_configs.clear()
    return world


async def _enrolling() -> World:
    return await waiting_world()


async def _overdue() -> World:
    return await overdue_world()


async def _recreating() -> World:
    world = await overdue_world()
    world.fuse.after = world.fuse.burnt + 1
    with pytest.raises(CrashError):
        await world.tick()
    assert world.resource.recreating_since is not None
    return world


async def _ready() -> World:
    world = make_world()
    await world.until_ready()
    return world


async def _lost() -> World:
    world = await _ready()
    world.cluster.objects.clear()
    world.raw["spec"]["observed"] = {"exists": False}
    await world.tick_until_quiet()
    assert reason_of(world) == "SubstrateLost"
    world.store.clock.advance(timedelta(minutes=1))
    world.raw["spec"]["declaration"]["retry"] = 1
    return world


async def _lost_and_accepted() -> World:
    """Crash right after the raised retry was stored, before anything came of it."""
    world = await _lost()
    world.fuse.after = world.fuse.burnt + 1
    with pytest.raises(CrashError):
        await world.tick()
    assert world.resource.accepted.retry == 1
    return world


Make = Callable[[], Awaitable[World]]
GIVES: list[Make] = [
    _fresh,
    _expired,
    _undelivered,
    _without_provider_config,
    _overdue,
    _recreating,
    _lost,
    _lost_and_accepted,
]
"""States in which a tick gives something out, or begins to make something anew."""
ASKS: list[Make] = [_fresh, _expired, _undelivered, _lost]
"""Those of them in which the record says that the namespace is what it waits for."""
RESTS: list[Make] = [_delivered, _enrolling, _ready]


def _there(world: World) -> object:
    """Return what was given out and what there is; windows may be kept open."""
    cluster, store = world.cluster, world.store
    return copy.deepcopy(
        (
            sorted(cluster.secrets),
            sorted(cluster.provider_configs),
            sorted(cluster.external_secrets),
            sorted((ref, live.released, live.terminating) for ref, live in cluster.objects.items()),
            sorted((row.generation, row.spent) for row in store.tokens.values()),
            [node.deregistered_at for node in store.nodes.values()],
            sorted(one.generation for one in store.resources.values()),
        )
    )


def _close(world: World, *, placed: bool) -> None:
    if placed:
        world.catalog.place(ready=False)
    else:
        world.catalog.projects.clear()


@pytest.mark.parametrize("placed", [True, False], ids=["not-ready", "not-placed"])
@pytest.mark.parametrize("make", GIVES + RESTS)
async def test_a_closed_gate_gives_nothing_takes_nothing_and_never_fails(
    make: Make, placed: bool
) -> None:
    world = await make()
    before = _there(world)

    _close(world, placed=placed)
    again = [await world.tick() for _ in range(TICKS)]

    assert _there(world) == before
    assert world.status.get("phase") != Phase.FAILED
    told = {item["reason"]: item["message"] for item in world.status["conditions"]}
    if make in ASKS:
        assert told["NamespaceNotReady" if placed else "ProjectNotFound"]
        assert again[-1] is not None
    if make is _lost_and_accepted:
        assert "Project" in told["SubstrateLost"]
        assert again[-1] is not None


@pytest.mark.parametrize("make", GIVES)
async def test_an_opened_gate_lets_go_on_what_waited(make: Make) -> None:
    world = await make()
    before = _there(world)
    _close(world, placed=True)
    await world.tick()

    world.catalog.place()
    for _ in range(TICKS):
        await world.tick()

    assert _there(world) != before


@pytest.mark.parametrize("make", RESTS)
async def test_an_open_gate_changes_nothing_of_what_rests(make: Make) -> None:
    world = await make()
    before = _there(world)

    for _ in range(TICKS):
        await world.tick()

    assert _there(world) == before
