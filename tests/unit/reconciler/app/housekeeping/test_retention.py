"""The passes of retention: their order, their batches, and what ends none of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from reconciler.app.housekeeping import retention
from reconciler.app.housekeeping.retention import Retention
from reconciler.ports.store.retention import Remains
from tests.fakes.retention import InMemoryRetention

DAY = timedelta(days=1)
OLD = 2 * DAY
KEEP: dict[Remains, timedelta | None] = dict.fromkeys(Remains, DAY)


async def test_a_resource_goes_after_what_refers_to_it() -> None:
    store = InMemoryRetention()

    await Retention(store, KEEP).make_pass()

    assert [remains for remains, _ in store.calls] == ["events", "tokens", "resources", "orphans"]


async def test_a_pass_goes_on_behind_the_last_row_until_a_batch_is_not_full() -> None:
    store = InMemoryRetention()
    store.leave(Remains.TOKENS, *[OLD] * (retention.BATCH + 1))
    full = sorted(store.over[Remains.TOKENS])[retention.BATCH - 1]

    removed = await Retention(store, KEEP).make_pass()

    tokens = [after for remains, after in store.calls if remains is Remains.TOKENS]
    assert removed == dict.fromkeys(Remains, 0) | {Remains.TOKENS: retention.BATCH + 1}
    assert tokens == [None, full]


async def test_what_is_kept_for_ever_is_not_asked_for() -> None:
    store = InMemoryRetention()

    await Retention(store, {**KEEP, Remains.TOKENS: None}).make_pass()

    assert Remains.TOKENS not in [remains for remains, _ in store.calls]


async def test_a_pass_beside_another_removes_nothing() -> None:
    store = InMemoryRetention(busy=True)
    store.leave(Remains.EVENTS, OLD)

    assert set((await Retention(store, KEEP).make_pass()).values()) == {0}


async def test_a_pass_ends_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCHES_MAX", 3)
    monkeypatch.setattr(retention, "BATCH", 1)
    store = InMemoryRetention()
    for remains in Remains:
        store.leave(remains, *[OLD] * 4)

    await Retention(store, KEEP).make_pass()

    assert len(store.calls) == 3 * len(Remains)


async def test_a_pass_that_fails_is_made_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "FIRST_PASS_S", 0.0)
    monkeypatch.setattr(retention, "PASS_EVERY_S", 0.0)
    store = InMemoryRetention(fails=1)
    store.leave(Remains.EVENTS, *[OLD] * 5)

    running = asyncio.create_task(Retention(store, KEEP).run())
    async with asyncio.timeout(30):
        await store.emptied.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert "retention_failed error=StoreUnavailableError" in caplog.text


async def test_the_first_pass_waits_until_the_start_is_over() -> None:
    store = InMemoryRetention()

    running = asyncio.create_task(Retention(store, KEEP).run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert store.calls == []
