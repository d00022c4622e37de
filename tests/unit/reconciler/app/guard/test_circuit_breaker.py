"""What is seen of a cluster counts whoever leads; what a driver says ends with its term."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

import pytest

from reconciler.app.guard import circuit_breaker
from reconciler.app.guard.circuit_breaker import ANSWERS_WINDOW_S, WINDOW_S, CircuitBreaker
from reconciler.domain.aggregate import ids
from reconciler.domain.guard.circuit_breaker import ANSWERS_MIN, CALM_S, FEW, BreakerCause

RESOURCES = [ids.ProvisionedResourceID(UUID(int=number)) for number in range(FEW + 1)]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def _until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not fact():  # noqa: ASYNC110 - what is waited for are facts of another object
            await asyncio.sleep(0.001)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def seen(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def test_a_doubt_of_who_stands_by_freezes_the_term_that_begins(seen: CircuitBreaker) -> None:
    seen.doubted(BreakerCause.WENT_BACK)

    with seen.leading():
        assert seen.mode.causes == {BreakerCause.WENT_BACK}


def test_a_doubt_of_one_term_freezes_the_next(seen: CircuitBreaker) -> None:
    with seen.leading():
        seen.doubted(BreakerCause.LIST_SHRANK)

    with seen.leading():
        assert seen.frozen


def test_what_the_driver_of_one_term_missed_is_looked_at_anew_in_the_next(
    seen: CircuitBreaker, clock: Clock
) -> None:
    with seen.leading():
        for each in RESOURCES:
            seen.missing.missed(each)
        seen.stored(well=False)
        seen.accept(wanted=True)
        assert seen.judge()

    seen.judge()
    clock.now += CALM_S
    with seen.leading():
        assert not seen.frozen
        assert len(seen.missing) == 0
        seen.doubted(BreakerCause.WENT_BACK)
        assert seen.frozen


def test_what_was_given_up_counts_for_as_long_as_what_happened_once(
    seen: CircuitBreaker, clock: Clock
) -> None:
    for each in RESOURCES:
        seen.gave_up(each)
    clock.now += WINDOW_S
    assert seen.judge()

    clock.now += 1
    seen.judge()

    assert seen.mode.calm_since == clock.now


def test_one_that_was_given_up_is_not_missing_too(seen: CircuitBreaker) -> None:
    for each in RESOURCES[:FEW]:
        seen.missing.missed(each)
        seen.gave_up(each)

    assert len(seen.missing) == 0
    assert not seen.judge()


async def test_who_stands_by_keeps_no_answer_for_longer_than_it_counts(
    seen: CircuitBreaker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "LOOK_S", 0.001)
    watching = asyncio.create_task(seen.watch())
    for _ in range(ANSWERS_MIN):
        seen.answered(False)
    await _until(lambda: seen.frozen)

    clock.now += ANSWERS_WINDOW_S + 1
    await _until(lambda: seen.mode.calm_since is not None)
    clock.now += CALM_S
    await _until(lambda: not seen.frozen)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def test_only_who_leads_tells_of_a_freeze(
    seen: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    seen.doubted(BreakerCause.WENT_BACK)
    assert caplog.messages == []

    with seen.leading():
        assert caplog.messages == [f"frozen causes={BreakerCause.WENT_BACK}"]
        clock.now += WINDOW_S + 1
        seen.judge()

    clock.now += CALM_S
    seen.judge()
    assert not seen.frozen
    assert len(caplog.messages) == 1
