"""Faults 15 and 19: a broker that sees yesterday's record, or one that was since made anew."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

Object = dict[str, Any]


class Historian:
    """Keeps every version of a record that a life went through."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.versions: list[Object] = []

    async def until(self, phase: str | None) -> None:
        """Live on until the record shows a phase, or is gone."""
        for _ in range(40):
            record = await self.life.record()
            if record is not None and record not in self.versions:
                self.versions.append(record)
            resting = await self.life.round()
            now = await self.life.record()
            shown = None if now is None else (now.get("status") or {}).get("phase")
            if resting and (now is None if phase is None else shown == phase):
                return
        message = f"it does not come to {phase}"
        raise AssertionError(message)

    async def replay(self) -> None:
        """Tick each version again, oldest first, as a cache that is behind would have it."""
        for version in self.versions:
            try:
                made(Kind.TIME_TRAVEL)
                await self.life.process.tick.run(copy.deepcopy(version))
            except Exception as error:  # noqa: BLE001 - as a worker of the queue does
                self.life.errors.append(error)


async def test_f15_old_versions_of_a_ready_record_change_nothing(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        history = Historian(life)
        await history.until("Ready")

        await history.replay()
        await life.until_ready()

        assert len(history.versions) >= 4
        assert await outcome(life) == whole.ready
        assert (await life.resource() or pytest.fail("gone")).generation == 1


@pytest.mark.parametrize("way", Way)
async def test_f15_old_versions_of_a_record_that_is_gone_bring_nothing_back(
    ground: Ground, plain: Plain, way: Way
) -> None:
    whole = await plain.of(ground, way)
    async with begun(ground) as life:
        history = Historian(life)
        await history.until("Ready")
        await life.delete(way)
        await history.until(None)

        # What a declaration in Git would bring back is not there any more.
        history.versions = [one for one in history.versions if _is_going(one)]
        await history.replay()
        await life.until_gone()

        assert history.versions
        assert await outcome(life) == whole.gone


async def test_f15_old_versions_in_mid_teardown_do_not_turn_it_round(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        history = Historian(life)
        await history.until("Ready")
        await life.delete(Way.REPLACED)

        while await life.record() is not None:
            await history.replay()
            await life.round()
        await life.until_gone()

        assert await outcome(life) == whole.gone


async def test_f19_a_record_that_was_made_anew_is_not_written_by_who_saw_the_old_one(
    ground: Ground,
) -> None:
    async with begun(ground) as life:
        await life.until_ready()
        old = await life.record()
        assert old is not None
        await life.delete(Way.REPLACED)
        await life.until_gone()
        await life.declare()
        fresh = await life.record()
        assert fresh is not None

        for _ in range(3):
            with pytest.raises(Exception, match=r"cannot (accept|write)"):
                await life.process.tick.run(copy.deepcopy(old) | {"status": {}})

        assert (await life.record() or {}).get("status") is None
        await life.until_ready()
        resource = await life.resource()
        assert resource is not None
        assert resource.record.uid == fresh["metadata"]["uid"]


def _is_going(record: Object) -> bool:
    return "deletionTimestamp" in record["metadata"]
