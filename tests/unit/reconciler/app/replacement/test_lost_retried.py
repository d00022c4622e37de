"""A raised `spec.retry` of a lost substrate is worked off to its end, whatever befalls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from function.contract.strategy import Phase
from tests.unit.reconciler.app.replacement_world import audit_of, make_world, reason_of, uid_of
from tests.unit.reconciler.app.world import World

ANEW = "made-in-flight"
EFFECTS_MAX = 40
"""Effects from the raised retry to a node that is Ready again, with some to spare."""


def _replaced(world: World) -> None:
    ((ref, live),) = world.cluster.objects.items()
    world.cluster.objects[ref] = replace(live, uid=ANEW, released=False)
    world.react()


def _gone(world: World) -> None:
    world.cluster.objects.clear()
    world.raw["spec"]["observed"] = {"exists": False}


WAYS = pytest.mark.parametrize("lose", [_replaced, _gone], ids=["replaced", "gone"])


async def _lost(lose: Callable[[World], None]) -> World:
    world = make_world()
    await world.until_ready()
    lose(world)
    await world.tick_until_quiet()
    assert reason_of(world) == "SubstrateLost"
    world.store.clock.advance(timedelta(minutes=1))
    return world


def _retry(world: World) -> None:
    world.raw["spec"]["declaration"]["retry"] = 1


async def _until_anew(world: World) -> None:
    await world.tick_until_quiet()
    world.store.clock.advance(timedelta(minutes=1))
    await world.tick_until_quiet()
    world.register()
    await world.tick_until_quiet()


def _nodes(world: World) -> list[bool]:
    return [node.deregistered_at is None for node in world.store.nodes.values()]


@WAYS
@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_does_not_use_the_retry_up(
    lose: Callable[[World], None], after: int
) -> None:
    world = await _lost(lose)
    _retry(world)
    world.fuse.after = world.fuse.burnt + after

    await _until_anew(world)

    assert (world.resource.phase, reason_of(world)) == (Phase.READY, None)
    assert _nodes(world) == [False, True]
    assert world.resource.recreating_since is None
    assert world.resource.protected[0].uid == uid_of(world)
    assert audit_of(world) == ["unreleased-substrate-gone", "retry", "recreate"]


@WAYS
async def test_the_crash_cases_cover_every_effect(lose: Callable[[World], None]) -> None:
    world = await _lost(lose)
    _retry(world)
    before = world.fuse.burnt

    await _until_anew(world)

    assert world.fuse.burnt - before <= EFFECTS_MAX


@WAYS
async def test_a_retry_that_is_refused_takes_no_node_out(lose: Callable[[World], None]) -> None:
    world = await _lost(lose)
    _retry(world)
    world.raw["spec"]["declaration"]["parameters"] = {"region": 7}

    for _ in range(3):
        await world.tick()

    assert reason_of(world) == "SubstrateLost"
    assert _nodes(world) == [True]


@WAYS
async def test_a_retry_that_was_worked_off_takes_no_later_node_out(
    lose: Callable[[World], None],
) -> None:
    world = await _lost(lose)
    _retry(world)
    await _until_anew(world)

    lose(world)
    await world.tick_until_quiet()

    assert reason_of(world) == "SubstrateLost"
    assert _nodes(world) == [False, True]


@pytest.mark.parametrize("ticks", range(1, 5))
async def test_a_run_in_flight_does_not_bring_back_one_that_was_gone(ticks: int) -> None:
    world = await _lost(_gone)
    reference = world.resource.protected[0].reference
    _retry(world)
    for _ in range(ticks):
        await world.tick()

    world.cluster.compose(reference, uid=ANEW)
    world.react()
    await _until_anew(world)

    assert world.resource.phase is Phase.READY
    assert uid_of(world) != ANEW
    assert world.resource.generation == 2
    assert _nodes(world) == [False, True]


async def test_its_recreation_is_not_blamed_on_the_node() -> None:
    world = await _lost(_gone)

    _retry(world)
    await _until_anew(world)

    (why,) = (row.reason for row in world.store.audit if row.action == "recreate")
    assert why.endswith("the substrate that its node registered from was deleted")


async def test_a_retry_raised_before_the_loss_is_known_is_not_a_word_on_it() -> None:
    world = make_world()
    await world.until_ready()
    _retry(world)
    await world.tick_until_quiet()

    _gone(world)
    await world.tick_until_quiet()

    assert reason_of(world) == "SubstrateLost"
    assert _nodes(world) == [True]


async def test_each_attempt_tells_its_own_ready_also_where_retry_fell() -> None:
    world = await _lost(_gone)
    _retry(world)
    await _until_anew(world)
    told = world.event_types().count("broker.ProvisionedResourceReady")
    # An XR applied again declares no retry.
    world.raw["spec"]["declaration"].pop("retry")
    await world.tick_until_quiet()
    for node in world.store.nodes.values():
        node.deregistered_at = world.store.clock.now()
    _gone(world)
    world.store.clock.advance(timedelta(minutes=1))
    await _until_anew(world)

    assert (world.resource.phase, world.resource.generation) == (Phase.READY, 3)
    assert (told, world.event_types().count("broker.ProvisionedResourceReady")) == (2, 3)
