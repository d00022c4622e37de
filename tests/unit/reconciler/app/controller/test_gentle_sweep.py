"""A sweep of many leaves the time to what changes, and compares what it saw at one time."""

from __future__ import annotations

import asyncio

from reconciler.app.controller.sweep import PAUSE_S, PORTION
from tests.simulation.loop import run
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.crowd import Crowd

MANY = 5 * PORTION


def test_a_change_passes_by_what_a_sweep_asked_for() -> None:
    async def change() -> None:
        crowd = Crowd(MANY)
        sweeping = asyncio.create_task(crowd.driver.sweep_records(gently=True))
        await asyncio.sleep(0)
        assert crowd.driver.queue.depth == PORTION

        last = crowd.where(crowd.resources[-1])
        crowd.driver.changed("provisioningrecords", last)
        await crowd.settle()

        assert crowd.ticks.done[0] == last[1]
        await sweeping

    run(change())


def test_it_asks_for_everything_in_the_end() -> None:
    async def sweep() -> None:
        crowd = Crowd(MANY)

        await crowd.driver.sweep_records(gently=True)
        await crowd.settle()

        assert len(set(crowd.ticks.done)) == MANY

    run(sweep())


def test_records_that_went_and_came_while_it_paused_freeze_nothing() -> None:
    async def flicker() -> None:
        crowd = Crowd(MANY)
        crowd.live |= {crowd.where(resource) for resource in crowd.resources}
        sweeping = asyncio.create_task(crowd.driver.sweep_records(gently=True))
        await asyncio.sleep(0)

        crowd.lose(crowd.resources[-MANY // 2 :], watch=False)
        await asyncio.sleep(2.5 * PAUSE_S)
        crowd.restore()
        await sweeping
        await crowd.driver.watch()

        assert not crowd.breaker.frozen
        assert len(crowd.breaker.missing) == 0

    run(flicker())


def test_what_vanishes_while_it_pauses_stays_evidence() -> None:
    async def vanish() -> None:
        crowd = Crowd(MANY)
        sweeping = asyncio.create_task(crowd.driver.sweep_records(gently=True))
        await asyncio.sleep(0)

        crowd.lose(crowd.resources[:PORTION], watch=True)
        await crowd.settle()
        await sweeping
        await crowd.driver.watch()

        assert len(crowd.breaker.missing) == PORTION
        assert crowd.breaker.frozen
        assert crowd.asked() == 0

    run(vanish())


def test_a_namespace_whose_project_is_gone_is_counted_with_each_sweep() -> None:
    async def sweep() -> None:
        crowd = Crowd(2)

        await crowd.driver.sweep_records()
        await crowd.settle()

        assert crowd.world.cluster.records_in == {samples.NAMESPACE: 2}

    run(sweep())
