"""One worker at a time per key, nothing lost, one bad key delays no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from reconciler.app.queue.fair_queue import RUN, Rank
from reconciler.app.queue.keys import Key, ProjectKey, RecordKey
from reconciler.app.queue.work_queue import BACKOFF_MAX_S, CONFLICTS_MAX, Work, WorkQueue, describe
from reconciler.domain.aggregate.errors import InvalidInputError, StaleAggregateError

A, B = ProjectKey(name="a"), ProjectKey(name="b")


@asynccontextmanager
async def _running(work: Work, *, workers: int = 4) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue(work, workers=workers)
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_change_during_work_is_worked_on_afterwards() -> None:
    started, release, runs = asyncio.Event(), asyncio.Event(), asyncio.Semaphore(0)
    active: list[Key] = []

    async def work(key: Key) -> float | None:
        assert key not in active
        active.append(key)
        started.set()
        await release.wait()
        active.remove(key)
        runs.release()
        return None

    async with asyncio.timeout(5), _running(work) as queue:
        queue.add(A)
        await started.wait()
        queue.add(A)
        queue.add(A)
        release.set()
        await runs.acquire()
        await runs.acquire()

    assert active == []


async def test_a_failing_key_comes_back_and_delays_no_other() -> None:
    done = asyncio.Event()
    tries: list[Key] = []

    async def work(key: Key) -> float | None:
        tries.append(key)
        if key == A and tries.count(A) < 3:
            message = "no"
            raise InvalidInputError(message)
        if key == A:
            done.set()
        return None

    async with asyncio.timeout(10), _running(work, workers=1) as queue:
        queue.add(A)
        queue.add(B)
        await done.wait()

    assert tries[:2] == [A, B]
    assert tries.count(A) == 3


async def test_keys_that_all_fail_at_once_let_go_of_the_loop() -> None:
    tries: list[Key] = []

    async def work(key: Key) -> float | None:
        tries.append(key)
        message = "the pool is closed"
        raise ConnectionError(message)

    async with asyncio.timeout(5), _running(work, workers=1) as queue:
        for number in range(100):
            queue.add(ProjectKey(name=f"p{number}"))
        for _ in range(10):
            await asyncio.sleep(0)
        early = len(tries)

    assert 0 < early <= 10


async def test_a_worker_ends_though_its_work_makes_an_error_of_its_cancellation() -> None:
    begun = asyncio.Event()

    async def work(key: Key) -> float | None:
        if begun.is_set():
            return None
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            message = "the call was cut off"
            raise ConnectionError(message) from None
        return None

    queue = WorkQueue(work, workers=1)
    task = asyncio.create_task(queue.run())
    queue.add(A)
    await begun.wait()
    task.cancel()
    ended, _ = await asyncio.wait([task], timeout=1)

    assert ended == {task}
    assert task.cancelled()


async def test_a_key_comes_back_when_its_work_says_so() -> None:
    again = asyncio.Event()
    seen: list[Key] = []

    async def work(key: Key) -> float | None:
        seen.append(key)
        if len(seen) == 2:
            again.set()
            return None
        return 0.0

    async with asyncio.timeout(5), _running(work) as queue:
        queue.add(A)
        await again.wait()

    assert seen == [A, A]


async def test_settling_works_off_what_is_ready_and_returns() -> None:
    seen: set[Key] = set()

    async def work(key: Key) -> float | None:
        seen.add(key)
        return None

    queue = WorkQueue(work, workers=2)
    queue.add(A)
    queue.add(B)

    async with asyncio.timeout(5):
        await queue.settle()

    assert seen == {A, B}


async def test_settling_ends_though_work_keeps_asking_for_itself() -> None:
    seen: list[Key] = []

    async def work(key: Key) -> None:
        seen.append(key)
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(0)

    queue = WorkQueue(work, workers=2)
    queue.add(A)
    queue.add(B)

    async with asyncio.timeout(5):
        await queue.settle()

    assert sorted(seen, key=str) == sorted((A, B), key=str)


async def test_settling_begins_nothing_once_its_time_is_over() -> None:
    seen: list[Key] = []

    async def work(key: Key) -> None:
        seen.append(key)

    queue = WorkQueue(work, workers=2)
    queue.add(A)
    queue.add(B)

    assert await queue.settle(within_s=0) == 2
    assert seen == []
    assert await queue.settle() == 0
    assert seen == [A, B]


def test_a_described_error_shows_our_words_and_only_the_type_of_others() -> None:
    secret = ValueError("row (42, hunter2)")
    error = InvalidInputError("cannot read row")
    error.__cause__ = secret

    assert describe(error) == "InvalidInputError: cannot read row <- ValueError"


def test_a_described_error_names_five_of_its_causes_at_most() -> None:
    error: Exception | None = None
    for number in range(9):
        outer = InvalidInputError(f"layer {number}")
        outer.__cause__, error = error, outer
    assert error is not None

    assert describe(error).count("layer") == 5
    assert describe(error).startswith("InvalidInputError: layer 8 <- ")


class Timers:
    """An event loop's timers that are only noted, and fired by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.delays: list[float] = []
        loop = asyncio.get_running_loop()
        real = loop.call_later

        def call_later(delay: float, call: object, *args: object) -> asyncio.TimerHandle:
            if getattr(call, "__func__", None) is not WorkQueue._due:
                return real(delay, call, *args)  # type: ignore[arg-type]  # whatever it is
            self.delays.append(delay)
            return real(3600, lambda: None)

        monkeypatch.setattr(loop, "call_later", call_later)


def _failing(error: Exception) -> Work:
    async def work(key: Key) -> float | None:
        raise error

    return work


async def test_the_pauses_of_a_failing_key_grow_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers(monkeypatch)
    queue = WorkQueue(_failing(InvalidInputError("no")), workers=2, dice=lambda: 0.0)

    for _ in range(14):
        queue.add(A)
        await queue.settle()
        queue._due(A)

    assert timers.delays[:3] == [0.25, 0.4, 0.4 * 1.6]
    assert timers.delays[-1] == BACKOFF_MAX_S
    assert timers.delays == sorted(timers.delays)


async def test_the_pauses_of_keys_that_fail_together_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = Timers(monkeypatch)
    dice = iter([0.0, 0.5, 1.0])
    queue = WorkQueue(_failing(InvalidInputError("no")), workers=1, dice=lambda: next(dice))

    for key in (A, B, ProjectKey(name="c")):
        queue.add(key)
    await queue.settle()

    assert timers.delays == [0.25, 0.1875, 0.125]


async def test_a_change_does_not_shorten_a_failing_keys_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = Timers(monkeypatch)
    tries = 0

    async def work(key: Key) -> float | None:
        nonlocal tries
        tries += 1
        message = "no"
        raise InvalidInputError(message)

    queue = WorkQueue(work, workers=2)
    queue.add(A, news="v1")
    await queue.settle()

    for _ in range(100):
        queue.add(A, news="v1")
        queue.add(A)
        await queue.settle()

    assert tries == 1
    assert len(timers.delays) == 1


async def test_news_end_a_failing_keys_pause_and_its_growth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = Timers(monkeypatch)
    queue = WorkQueue(_failing(InvalidInputError("no")), workers=2, dice=lambda: 0.0)
    queue.add(A, news="v1")
    for _ in range(5):
        await queue.settle()
        queue._due(A)
    await queue.settle()

    queue.add(A, news="v2")
    await queue.settle()

    assert timers.delays[-2] > 1.0
    assert timers.delays[-1] == 0.25


async def test_news_during_a_failing_run_are_worked_on_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = Timers(monkeypatch)

    async def work(key: Key) -> float | None:
        if not timers.delays and queue.depth == 0:
            queue.add(A, news="v2")
        message = "no"
        raise InvalidInputError(message)

    queue = WorkQueue(work, workers=2)
    queue.add(A, news="v1")
    await queue.settle()

    assert queue.depth == 1
    assert timers.delays == []


async def test_a_lost_race_is_no_failure_until_it_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers(monkeypatch)
    queue = WorkQueue(_failing(StaleAggregateError("lost")), workers=2, dice=lambda: 0.0)

    for _ in range(CONFLICTS_MAX + 6):
        queue.add(A)
        await queue.settle()
        queue._due(A)

    assert timers.delays[: CONFLICTS_MAX + 1] == [0.25] * (CONFLICTS_MAX + 1)
    assert timers.delays[-1] > 0.25


async def test_a_project_with_thousands_of_keys_delays_anothers_by_one_turn() -> None:
    order: list[str] = []
    done = asyncio.Event()

    async def work(key: Key) -> float | None:
        assert isinstance(key, RecordKey)
        order.append(key.namespace)
        if len(order) == 100:
            queue.add(RecordKey(namespace="small", name="one"))
        if key.namespace == "small":
            done.set()
        await asyncio.sleep(0)
        return None

    async with asyncio.timeout(30), _running(work, workers=16) as queue:
        for number in range(5000):
            queue.add(RecordKey(namespace="big", name=str(number)))
        await done.wait()

    assert order.index("small") <= 100 + 16


async def _after(*first: float | None, asked: Rank) -> list[Key]:
    """Return the order of work once A said when to come back, was swept, and others changed."""
    order: list[Key] = []
    answers = iter(first)

    async def work(key: Key) -> float | None:
        order.append(key)
        again = next(answers, None)
        if again == 0.0:
            # A sweep asks while it is worked on.
            queue.add(key, rank=asked)
            _change()
        return again

    def _change() -> None:
        for number in range(RUN):
            queue.add(RecordKey(namespace="shop", name=f"web-{number}"))

    queue = WorkQueue(work, workers=1)
    queue.add(A)
    await queue.settle()
    if first[0] != 0.0:
        queue.add(A, rank=asked)
        _change()
    while queue.depth:
        await queue.settle()
    return order


@pytest.mark.parametrize("again", [60.0, 0.0], ids=["a timer", "at once"])
async def test_what_said_when_to_come_back_does_not_sink_in_rank_by_a_sweep(again: float) -> None:
    order = await _after(again, asked=Rank.ROUTINE)

    assert order.index(A, 1) < RUN


async def test_what_only_a_sweep_asks_for_waits_for_changes() -> None:
    order = await _after(None, asked=Rank.ROUTINE)

    assert order.index(A, 1) == RUN


async def test_a_key_at_rest_is_remembered_by_nothing() -> None:
    async def work(_key: Key) -> float | None:
        return None

    queue = WorkQueue(work, workers=1)
    queue.add(A, news="v1")

    await queue.settle()

    kept = [name for name, value in vars(queue).items() if isinstance(value, dict | set)]
    assert kept
    assert [name for name in kept if A in vars(queue)[name]] == []
