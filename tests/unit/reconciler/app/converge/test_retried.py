"""A raised `spec.retry` is answered: it starts over, or the fact that still fails is named."""

from __future__ import annotations

from datetime import timedelta

import pytest

from function.contract.strategy import Phase
from tests.unit.reconciler.app.replacement_world import make_world, reason_of
from tests.unit.reconciler.app.world import World

FAILURE = "QuotaExceeded: no more servers"


async def _failed() -> World:
    world = make_world()
    await world.tick_until_quiet()
    _fails(world, FAILURE)
    await world.tick()
    assert reason_of(world) == "Failed"
    world.store.clock.advance(timedelta(minutes=1))
    return world


def _fails(world: World, failure: str) -> None:
    observed = {"exists": True, "failed": bool(failure), "reason": failure}
    world.raw["spec"]["observed"] = {**world.raw["spec"].get("observed", {}), **observed}


def _message(world: World, condition_type: str = "Stalled") -> str:
    return str(
        next(
            item["message"]
            for item in world.raw["status"]["conditions"]
            if item["type"] == condition_type
        )
    )


@pytest.mark.parametrize("condition_type", ["Stalled", "Ready"])
async def test_a_failure_is_told_in_the_substrates_words(condition_type: str) -> None:
    world = await _failed()

    assert _message(world, condition_type) == (
        f"The substrate reports: {FAILURE}. Fix the cause, then increment spec.retry."
    )


async def test_a_retry_that_meets_the_same_failure_names_it_and_the_retry() -> None:
    world = await _failed()
    world.raw["spec"]["declaration"]["retry"] = 1

    await world.tick()

    assert world.raw["status"]["phase"] == Phase.FAILED
    assert _message(world) == (
        f"With spec.retry 1 accepted, the substrate reports: {FAILURE}. "
        "Fix the cause, then increment spec.retry."
    )


async def test_a_failure_whose_request_id_changes_is_told_once() -> None:
    world = await _failed()
    _fails(world, "QuotaExceeded: no room (request 1f3c)")
    await world.tick()
    before = _message(world)
    _fails(world, "QuotaExceeded: no room (request 77aa)")

    await world.tick()

    assert "1f3c" in before
    assert _message(world) == before


async def test_a_failure_that_ended_asks_for_the_retry_and_the_retry_starts_over() -> None:
    world = await _failed()
    _fails(world, "")
    await world.tick()
    ended = _message(world)

    world.raw["spec"]["declaration"]["retry"] = 1
    await world.tick_until_quiet()

    assert ended == "The substrate reports no terminal failure any more. Increment spec.retry."
    assert world.raw["status"]["phase"] != Phase.FAILED
