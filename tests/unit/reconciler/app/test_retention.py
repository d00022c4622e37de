"""The passes of retention: their order, their batches, and what ends none of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import pytest

from reconciler.app import retention
from reconciler.app.retention import Retention
from reconciler.ports.identity import StoreUnavailableError
from reconciler.ports.retention import Batch, Remains

DAY = timedelta(days=1)
KEEP: dict[Remains, timedelta | None] = dict.fromkeys(Remains, DAY)


@dataclass
class Rows:
    """A store of so many rows of each kind that are over.

    Attributes:
        calls: Kind and first id of each batch.
        busy: Another process is at it.
        fails: How many of the next calls fail.
        endless: It finds a whole batch each time.
        emptied: Set by a batch that found something and left nothing.
    """

    left: dict[Remains, int] = field(default_factory=dict)
    calls: list[tuple[Remains, UUID | None]] = field(default_factory=list)
    busy: bool = False
    fails: int = 0
    endless: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)

    async def remove(
        self, remains: Remains, *, keep: timedelta, after: UUID | None, limit: int
    ) -> Batch | None:
        self.calls.append((remains, after))
        if self.fails:
            self.fails -= 1
            message = "cannot remove events: the store cannot be reached"
            raise StoreUnavailableError(message)
        if self.busy:
            return None
        found = limit if self.endless else min(limit, self.left.get(remains, 0))
        self.left[remains] = self.left.get(remains, 0) - found
        if found and not self.left[remains]:
            self.emptied.set()
        last = UUID(int=len(self.calls)) if found == limit else None
        return Batch(removed=found, last=last)


async def test_a_resource_goes_after_what_refers_to_it() -> None:
    store = Rows()

    await Retention(store, KEEP).make_pass()

    assert [remains for remains, _ in store.calls] == ["events", "tokens", "resources", "orphans"]


async def test_a_pass_goes_on_behind_the_last_row_until_a_batch_is_not_full() -> None:
    store = Rows(left={Remains.TOKENS: retention.BATCH + 1})

    removed = await Retention(store, KEEP).make_pass()

    tokens = [after for remains, after in store.calls if remains is Remains.TOKENS]
    assert removed == dict.fromkeys(Remains, 0) | {Remains.TOKENS: retention.BATCH + 1}
    assert tokens == [None, UUID(int=2)]


async def test_what_is_kept_for_ever_is_not_asked_for() -> None:
    store = Rows()

    await Retention(store, {**KEEP, Remains.TOKENS: None}).make_pass()

    assert Remains.TOKENS not in [remains for remains, _ in store.calls]


async def test_a_pass_beside_another_removes_nothing() -> None:
    store = Rows(busy=True, left={Remains.EVENTS: 1})

    assert set((await Retention(store, KEEP).make_pass()).values()) == {0}


async def test_a_pass_ends_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCHES_MAX", 3)
    store = Rows(endless=True)

    await Retention(store, KEEP).make_pass()

    assert len(store.calls) == 3 * len(Remains)


async def test_a_pass_that_fails_is_made_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "FIRST_PASS_S", 0.0)
    monkeypatch.setattr(retention, "PASS_EVERY_S", 0.0)
    store = Rows(fails=1, left={Remains.EVENTS: 5})

    running = asyncio.create_task(Retention(store, KEEP).run())
    async with asyncio.timeout(30):
        await store.emptied.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert "retention_failed error=StoreUnavailableError" in caplog.text


async def test_the_first_pass_waits_until_the_start_is_over() -> None:
    store = Rows()

    running = asyncio.create_task(Retention(store, KEEP).run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert store.calls == []
