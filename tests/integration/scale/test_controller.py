"""The driver over a real database: it writes nothing at rest, and believes no lost cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reconciler.domain.guard.circuit_breaker import BreakerCause
from reconciler.ports.store.census import PAGE
from tests.integration.scale.rig import Where, rigged

pytestmark = pytest.mark.integration


async def test_at_rest_nothing_is_written_to_postgres_or_the_cluster() -> None:
    async with rigged(60) as rig:
        for _ in range(2):
            await rig.sweep()
        before = await rig.written()
        rig.cluster.journal.clear()
        rig.gateway.written.clear()

        for _ in range(25):
            await rig.sweep()

        assert await rig.written() == before
        assert rig.cluster.journal == []
        assert rig.gateway.written == []
        assert rig.driver.sweep.settled == 60


@pytest.mark.parametrize("watch", [True, False], ids=["watch", "relist"])
async def test_an_emptied_cluster_asks_for_no_deletion(watch: bool) -> None:
    async with rigged(60) as rig:
        await rig.sweep()
        gone = list(rig.records)

        rig.records.clear()
        for where in gone if watch else ():
            rig.driver.changed("provisioningrecords", where)
        await rig.wait()

        assert await rig.asked() == 0
        assert rig.driver.breaker.mode.causes == {BreakerCause.RECORDS_VANISHED}


async def test_two_that_vanish_are_torn_down_after_the_second_look() -> None:
    async with rigged(60) as rig:
        await rig.sweep()

        for where in list(rig.records)[:2]:
            del rig.records[where]
            rig.driver.changed("provisioningrecords", where)
        await rig.sweep()
        early = await rig.asked()
        await rig.wait()

        assert early == 0
        assert await rig.asked() == 2


class CountedRecords(dict[Where, dict[str, Any]]):
    """Counts how many records a sweep compares."""

    compared = 0

    def __contains__(self, where: object) -> bool:
        self.compared += 1
        return super().__contains__(where)


async def test_a_sweep_lets_others_have_a_turn_after_each_page() -> None:
    async with rigged(PAGE + 100) as rig:
        rig.records = records = CountedRecords(rig.records)
        await rig.sweep()
        longest, done = 0, False

        async def beat() -> None:
            nonlocal longest
            while not done:
                before = records.compared
                await asyncio.sleep(0)
                longest = max(longest, records.compared - before)

        async with asyncio.TaskGroup() as group:
            group.create_task(beat())
            await rig.sweep()
            done = True

        assert 0 < longest <= PAGE
        assert records.compared >= 2 * len(records)
