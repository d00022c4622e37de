"""For how long nodes could get through: never assumed, and never over a break."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from reconciler.app.registration.endpoint_uptime import GAP_S, PROOF_S, EndpointUptime

NOTHING = timedelta()


class _Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def _proved(reachability: EndpointUptime, time: _Time, *, times: int) -> None:
    for _ in range(times):
        time.seconds += PROOF_S
        reachability.proved()


@pytest.fixture
def time() -> _Time:
    return _Time()


@pytest.fixture
def reachability(time: _Time) -> EndpointUptime:
    return EndpointUptime(time)


def test_before_the_listener_listens_nobody_could_come(
    reachability: EndpointUptime, time: _Time
) -> None:
    time.seconds += 1e6

    assert reachability.lasts() == NOTHING


def test_it_lasts_from_the_first_proof_to_the_last(
    reachability: EndpointUptime, time: _Time
) -> None:
    _proved(reachability, time, times=13)

    assert reachability.lasts() == timedelta(seconds=12 * PROOF_S)


def test_a_store_that_failed_starts_it_anew(reachability: EndpointUptime, time: _Time) -> None:
    _proved(reachability, time, times=13)

    reachability.lost()

    assert reachability.lasts() == NOTHING
    _proved(reachability, time, times=3)
    assert reachability.lasts() == timedelta(seconds=2 * PROOF_S)


async def test_it_is_proved_by_answers_and_lost_by_errors(
    reachability: EndpointUptime, time: _Time
) -> None:
    answers = iter([True, True, True, False, True, True])
    lasted: list[float] = []
    over = asyncio.Event()

    async def ask() -> None:
        lasted.append(reachability.lasts().total_seconds())
        time.seconds += PROOF_S
        answer = next(answers, None)
        if answer is None:
            over.set()
            await asyncio.Event().wait()
        if not answer:
            raise OSError

    proving = asyncio.create_task(reachability.prove(ask, every_s=0))
    async with asyncio.timeout(10):
        await over.wait()
    proving.cancel()
    await asyncio.gather(proving, return_exceptions=True)

    assert lasted == [0, 0, PROOF_S, 2 * PROOF_S, 0, 0, PROOF_S]


def test_a_process_that_stood_still_starts_it_anew(
    reachability: EndpointUptime, time: _Time
) -> None:
    _proved(reachability, time, times=13)

    time.seconds += GAP_S + 1

    assert reachability.lasts() == NOTHING
    reachability.proved()
    assert reachability.lasts() == NOTHING
