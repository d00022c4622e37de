"""Virtual time: hours pass at once, in order, and a standstill is told."""

from __future__ import annotations

import asyncio

import pytest

from tests.simulation import loop


def test_hours_pass_at_once() -> None:
    async def wait() -> float:
        await asyncio.sleep(7200.0)
        return asyncio.get_running_loop().time()

    assert loop.run(wait()) == pytest.approx(7200.0)


def test_of_two_timers_of_one_moment_the_first_goes_first() -> None:
    went: list[int] = []

    async def wait() -> None:
        for number in range(50):
            asyncio.get_running_loop().call_at(10.0, went.append, number)
        await asyncio.sleep(11.0)

    loop.run(wait())

    assert went == list(range(50))


def test_a_timeout_is_one_of_virtual_time() -> None:
    async def wait() -> None:
        async with asyncio.timeout(3600.0):
            await asyncio.sleep(3601.0)

    with pytest.raises(TimeoutError):
        loop.run(wait())


def test_what_waits_for_nothing_that_comes_is_told() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(loop.FrozenError):
        loop.run(wait())
