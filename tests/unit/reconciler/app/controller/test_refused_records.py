"""Refused records are asked again when something changed: however much did, a pass a second."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from reconciler.app.controller.refused_records import CHUNK, PAUSE_S, RefusedRecords
from reconciler.app.queue.keys import Key, RecordKey
from reconciler.app.queue.work_queue import WorkQueue
from tests.simulation.loop import run
from tests.unit.reconciler.app.crowd import Crowd


def _key(number: int) -> RecordKey:
    return RecordKey(namespace="shop", name=f"web-{number}")


class Asked:
    """Counts what is asked, of some refused records."""

    def __init__(self, size: int) -> None:
        self.counts: Counter[RecordKey] = Counter()
        self.records = RefusedRecords(self._ask)
        for number in range(size):
            self.records.add(_key(number))

    def _ask(self, key: RecordKey) -> None:
        self.counts[key] += 1


def test_the_first_change_is_passed_on_at_once() -> None:
    async def change() -> None:
        asked = Asked(3)

        asked.records.ask_again()

        assert asked.counts == {_key(0): 1, _key(1): 1, _key(2): 1}

    run(change())


def test_changes_of_one_moment_are_two_passes_whatever_their_number() -> None:
    async def change() -> None:
        asked = Asked(3)

        for _ in range(10_000):
            asked.records.ask_again()
        await asyncio.sleep(10 * PAUSE_S)

        assert set(asked.counts.values()) == {2}

    run(change())


def test_a_steady_stream_of_changes_is_a_pass_a_pause() -> None:
    async def change() -> None:
        asked = Asked(1)

        for _ in range(100):
            asked.records.ask_again()
            await asyncio.sleep(PAUSE_S / 10)
        await asyncio.sleep(10 * PAUSE_S)

        assert 10 <= asked.counts[_key(0)] <= 12

    run(change())


def test_who_is_refused_during_the_pause_is_asked_at_its_end() -> None:
    async def change() -> None:
        asked = Asked(0)
        asked.records.ask_again()
        asked.records.add(_key(7))
        asked.records.ask_again()
        assert asked.counts == {}

        await asyncio.sleep(2 * PAUSE_S)

        assert asked.counts == {_key(7): 1}

    run(change())


def test_a_pass_lets_others_run_and_leaves_out_who_is_admitted_meanwhile() -> None:
    async def change() -> None:
        asked = Asked(CHUNK + 2)

        asked.records.ask_again()
        assert len(asked.counts) == CHUNK
        asked.records.discard(_key(CHUNK))
        await asyncio.sleep(0)

        assert len(asked.counts) == CHUNK + 1
        assert _key(CHUNK) not in asked.counts

    run(change())


def test_a_cold_start_of_many_projects_asks_each_record_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added: Counter[Key] = Counter()

    def add(_: WorkQueue, key: Key, **__: object) -> None:
        added[key] += 1

    async def start() -> None:
        crowd = Crowd(50)
        for resource in crowd.resources:
            crowd.driver.changed("provisioningrecords", crowd.where(resource))
        added.clear()

        for number in range(200):
            crowd.driver.changed("cloudcredentials", ("", f"c-{number}"))
        await asyncio.sleep(10 * PAUSE_S)

    monkeypatch.setattr(WorkQueue, "add", add)
    run(start())

    assert len(added) == 50
    assert set(added.values()) == {2}
