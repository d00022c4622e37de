"""The queue comes back for its second look by itself, and the evidence counts there, too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from reconciler.app.guard.missing_records import SECOND_LOOK_S
from reconciler.domain.guard.circuit_breaker import BreakerCause
from tests.fakes.memory import MemoryStore
from tests.simulation.ground import LoopClock
from tests.simulation.loop import run
from tests.unit.reconciler.app.crowd import Crowd


def _driven(size: int, tell: Callable[[Crowd], Awaitable[None]]) -> None:
    """Have a crowd's queue run, and nothing sweep, while something happens to it."""

    async def drive() -> None:
        crowd = Crowd(size, store=MemoryStore(clock=LoopClock()))
        working = asyncio.create_task(crowd.driver.queue.run())
        await tell(crowd)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    run(drive())


def test_one_that_vanished_is_looked_at_again_although_nothing_sweeps() -> None:
    async def vanish(crowd: Crowd) -> None:
        crowd.lose(crowd.resources[:1], watch=True)

        await asyncio.sleep(SECOND_LOOK_S - 1)
        assert crowd.asked() == 0
        await asyncio.sleep(2)

        assert crowd.asked() == 1

    _driven(3, vanish)


def test_the_first_of_many_are_not_believed_at_their_second_look() -> None:
    async def vanish(crowd: Crowd) -> None:
        crowd.lose(crowd.resources[:10], watch=True)

        await asyncio.sleep(1)
        assert crowd.breaker.mode.causes == {BreakerCause.RECORDS_VANISHED}
        await asyncio.sleep(10 * SECOND_LOOK_S)

        assert crowd.asked() == 0

    _driven(40, vanish)


def test_one_is_not_believed_when_others_vanished_since_the_first_look() -> None:
    async def vanish(crowd: Crowd) -> None:
        crowd.lose(crowd.resources[:1], watch=True)
        await asyncio.sleep(SECOND_LOOK_S - 1)

        crowd.lose(crowd.resources[1:10], watch=True)
        await asyncio.sleep(10 * SECOND_LOOK_S)

        assert crowd.asked() == 0

    _driven(40, vanish)


def test_a_cache_that_a_live_look_contradicted_is_looked_at_again_although_nothing_sweeps() -> None:
    async def lose(crowd: Crowd) -> None:
        crowd.live.add(crowd.where(crowd.resources[0]))
        crowd.lose(crowd.resources[:1], watch=True)

        await asyncio.sleep(2 * SECOND_LOOK_S - 1)
        assert not crowd.breaker.frozen
        await asyncio.sleep(2)

        assert crowd.breaker.mode.causes == {BreakerCause.CACHE_STALE}
        assert crowd.lists == 1
        assert crowd.asked() == 0

    _driven(3, lose)
