"""A queue keyed by object: one worker at a time per key, per-key back-off.

Which key is worked on when. A key that is added while it is being worked on is worked on
once more afterwards, so that no change is lost.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

from reconciler.app.queue.fair_queue import FairQueue, Rank
from reconciler.app.queue.keys import Key, lane_of
from reconciler.domain.aggregate.errors import StaleAggregateError

BACKOFF_FIRST_S: Final = 0.25
BACKOFF_FACTOR: Final = 1.6
BACKOFF_MAX_S: Final = 30.0
"""A key that keeps failing is tried again at least as often as the sweep would."""

JITTER: Final = 0.5
"""A pause is shorter by up to this part of it: keys that failed together come back apart."""

CONFLICTS_MAX: Final = 3
"""Lost races in a row that are no failure: somebody else wrote, and what it wrote is on its way."""

_log = logging.getLogger(__name__)


Work = Callable[[Key], Awaitable[float | None]]
"""Does one key; returns seconds after which to come back, or None to wait for a change."""


class Failing(NamedTuple):
    """A key whose work failed.

    Attributes:
        times: How often in a row.
        conflicts: How often of these somebody else was faster.
    """

    times: int = 0
    conflicts: int = 0


@dataclass(slots=True)
class Tally:
    """The count and the seconds of finished runs, by kind of key and outcome."""

    runs: int = 0
    seconds: float = 0.0


class WorkQueue:
    """Runs work for keys with a fixed number of workers.

    A key that failed waits for its back-off, whatever changes meanwhile: the change may be
    its own report of the failure. Only news lets it start again.

    Memory is one entry per key that is waiting or failing; keys come from objects, so the
    number of objects bounds it.

    Attributes:
        tallies: By a key's kind and whether its work failed.
    """

    def __init__(
        self, work: Work, *, workers: int, dice: Callable[[], float] = random.random
    ) -> None:
        """Make a queue.

        Args:
            work: What is done for a key.
            workers: Keys that are worked on at once.
            dice: Gives the jitter, from 0 to 1.
        """
        self._work = work
        self._workers = workers
        self._dice = dice
        self.tallies: defaultdict[tuple[str, bool], Tally] = defaultdict(Tally)
        self._waiting: FairQueue[Key] = FairQueue(workers=workers)
        self._wake = asyncio.Event()
        self._active: set[Key] = set()
        self._dirty: dict[Key, Rank] = {}
        self._renewed: set[Key] = set()
        self._news: dict[Key, Hashable] = {}
        self._failing: dict[Key, Failing] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""
        return len(self._waiting)

    @property
    def failing(self) -> int:
        """How many keys failed when they were worked on last."""
        return len(self._failing)

    def add(self, key: Key, *, news: Hashable = None, rank: Rank = Rank.CHANGED) -> None:
        """Ask for a key to be worked on soon.

        Args:
            key: The key.
            news: What its work depends on, as somebody stated it. Another value than the
                last one ends a back-off; None tells nothing.
            rank: Who waits for it.

        Idempotency: waiting keys wait once; one that failed keeps its back-off.
        """
        changed = news is not None and news != self._news.get(key)
        if changed:
            self._news[key] = news
        if key in self._active:
            self._dirty[key] = max(self._dirty.get(key, rank), rank)
            if changed:
                self._renewed.add(key)
            return
        if changed:
            self._failing.pop(key, None)
        elif key in self._failing and key in self._timers:
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
            rank = max(rank, Rank.CHANGED)
        self._waiting.put(key, lane_of(key), rank)
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())

    async def settle(self, *, within_s: float = math.inf) -> int:
        """Work off what is ready now and return; what fails is reported and comes back.

        What is asked for meanwhile waits for `run`: a steady stream of changes has no end.

        Args:
            within_s: Nothing is begun after that many seconds.

        Returns:
            How many keys of those that were ready wait for `run`, too.
        """
        left = len(self._waiting)
        now = iter(range(left))
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + within_s

        async def drain() -> None:
            nonlocal left
            while loop.time() < deadline_s and next(now, None) is not None:
                key = await self._take()
                left -= 1
                await self._one(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(drain())
        return left

    async def _take(self) -> Key:
        while (key := self._waiting.take()) is None:
            self._wake.clear()
            await self._wake.wait()
        return key

    async def _worker(self) -> None:
        while True:
            await self._one(await self._take())

    async def _one(self, key: Key) -> None:
        self._active.add(key)
        started = time.monotonic()
        again: float | None = None
        error: Exception | None = None
        try:
            again = await self._work(key)
        except Exception as raised:  # noqa: BLE001 - one bad object never stops the others
            error = raised
            heed_cancellation(raised)
        finally:
            self._active.discard(key)
            self._waiting.done(lane_of(key))
            self._wake.set()
        tally = self.tallies[type(key).__name__.removesuffix("Key").lower(), error is not None]
        tally.runs += 1
        tally.seconds += time.monotonic() - started
        rank = self._dirty.pop(key, None)
        renewed = key in self._renewed
        self._renewed.discard(key)
        if error is not None:
            again = self._failed(key, error)
        else:
            self._failing.pop(key, None)
        if rank is not None and (renewed or error is None):
            self._failing.pop(key, None)
            self.add(key, rank=rank if again is None else max(rank, Rank.CHANGED))
        elif again is not None:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(again, self._due, key)
        else:
            self._news.pop(key, None)
        if error is not None:
            # What fails at once, of a store that is closed, would run all keys in one step.
            await asyncio.sleep(0)

    def _failed(self, key: Key, error: Exception) -> float:
        """Count a failure; return the seconds until the next try."""
        before = self._failing.get(key, Failing())
        lost = isinstance(error, StaleAggregateError) and before.conflicts < CONFLICTS_MAX
        now = before._replace(
            times=before.times + (not lost), conflicts=before.conflicts + lost if lost else 0
        )
        self._failing[key] = now
        level = logging.DEBUG if lost else logging.WARNING
        _log.log(level, "tick_failed key=%s error=%s", key, describe(error))
        _log.debug("tick_failed key=%s", key, exc_info=error)
        step = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * BACKOFF_FACTOR ** max(0, now.times - 1))
        return step * (1 - JITTER * self._dice())

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)


def heed_cancellation(error: Exception) -> None:
    """Go on being cancelled, whatever something below made of it.

    Args:
        error: What was caught where nothing else is let through.

    Raises:
        asyncio.CancelledError: The task was asked to end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def describe(error: BaseException) -> str:
    """Return an error and its causes in one line, our own messages only.

    Driver texts can quote row values, so of foreign errors only the type is shown
    (style §3.6).
    """
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 5:
        ours = type(current).__module__.partition(".")[0] in {"reconciler", "function"}
        name = type(current).__name__
        parts.append(f"{name}: {current}" if ours and str(current) else name)
        current = current.__cause__
    return " <- ".join(parts).replace("\n", " ")
