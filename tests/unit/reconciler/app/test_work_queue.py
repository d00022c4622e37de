"""One worker at a time per key, nothing lost, one bad key delays no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reconciler.app.work_queue import Key, ProjectKey, Work, WorkQueue, describe
from reconciler.domain.broker.errors import InvalidInputError

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
