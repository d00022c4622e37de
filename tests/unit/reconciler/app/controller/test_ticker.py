"""Looks come at intervals, whatever they take and whatever becomes of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from reconciler.app.controller.sweep import PAUSE_S, PORTION, pause
from reconciler.app.controller.ticker import REST_S, Ticker
from tests.simulation.loop import run

INTERVAL = timedelta(seconds=30)


async def _looks(*took_s: float, interval: timedelta = INTERVAL) -> list[float]:
    """Return when looks began that took so long each."""
    loop = asyncio.get_running_loop()
    began: list[float] = []
    origin = loop.time()
    ends = asyncio.Event()

    async def look() -> None:
        began.append(loop.time() - origin)
        if len(began) > len(took_s):
            ends.set()
            return
        await asyncio.sleep(took_s[len(began) - 1])

    ticking = asyncio.create_task(Ticker().run("looks", look, interval))
    await ends.wait()
    ticking.cancel()
    return [round(at, 3) for at in began]


def test_a_look_that_takes_long_does_not_put_off_the_next() -> None:
    assert run(_looks(0.0, 10.0, 29.5)) == [30.0, 60.0, 90.0, 120.5]


def test_looks_that_take_longer_than_their_interval_leave_a_rest() -> None:
    assert run(_looks(100.0)) == [30.0, 130.0 + REST_S]
    assert run(_looks(1.0, interval=timedelta(seconds=0.2))) == [0.2, 1.4]


def test_what_a_look_died_of_is_told_until_one_ends_well() -> None:
    async def fail_once() -> None:
        ticker = Ticker()
        faults: list[str | None] = []
        ends = asyncio.Event()

        async def look() -> None:
            faults.append(ticker.fault)
            if len(faults) == 1:
                raise TimeoutError
            if len(faults) == 3:
                ends.set()

        ticking = asyncio.create_task(ticker.run("looks", look, INTERVAL))
        await ends.wait()
        ticking.cancel()

        assert faults == [None, "TimeoutError", None]

    run(fail_once())


@pytest.mark.parametrize(
    ("of", "took_s"), [(PORTION - 1, 0.0), (4 * PORTION, 4 * PAUSE_S), (50_000, 80 * PAUSE_S)]
)
def test_a_gentle_sweep_pauses_after_each_portion_and_not_for_ever(of: int, took_s: float) -> None:
    async def ask() -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        for asked in range(1, of + 1):
            await pause(asked, of=of, gently=True)
        return round(loop.time() - started, 3)

    assert run(ask()) == took_s
