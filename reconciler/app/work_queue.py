"""A queue keyed by object: one worker at a time per key, per-key back-off.

Belongs here: which key is worked on when. Not here: what the work is. A key that is added
while it is being worked on is worked on once more afterwards, so that no change is lost.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

BACKOFF_FIRST_S: Final = 0.25
BACKOFF_FACTOR: Final = 1.6
BACKOFF_MAX_S: Final = 30.0
"""A key that keeps failing is tried again at least as often as the sweep would."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """A record in a management cluster."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateKey:
    """An aggregate whose record may be gone, by its id's canonical text."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingsKey:
    """The siblings of an aggregate that is Deleted, by its id's canonical text."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectKey:
    """A Project object."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialKey:
    """A credential in use in a namespace, or still held there."""

    namespace: str
    credential: str


Key = RecordKey | AggregateKey | SiblingsKey | ProjectKey | CredentialKey
Work = Callable[[Key], Awaitable[float | None]]
"""Does one key; returns seconds after which to come back, or None to wait for a change."""


class WorkQueue:
    """Runs work for keys with a fixed number of workers.

    A key that failed waits for its back-off even when it changed meanwhile, because the
    change may be its own report of the failure.

    Memory is one entry per key that is waiting or failing; keys come from objects, so the
    number of objects bounds it.
    """

    def __init__(self, work: Work, *, workers: int) -> None:
        self._work = work
        self._workers = workers
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._active: set[Key] = set()
        self._dirty: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    def add(self, key: Key) -> None:
        """Ask for a key to be worked on soon. Idempotency: waiting keys wait once."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._active:
            self._dirty.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)

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
        left = self._ready.qsize()
        now = iter(range(left))
        deadline_s = time.monotonic() + within_s

        async def drain() -> None:
            nonlocal left
            while time.monotonic() < deadline_s and next(now, None) is not None:
                left -= 1
                await self._one(self._ready.get_nowait())

        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(drain())
        return left

    async def _worker(self) -> None:
        while True:
            await self._one(await self._ready.get())

    async def _one(self, key: Key) -> None:
        self._queued.discard(key)
        self._active.add(key)
        again: float | None
        failed = False
        try:
            again = await self._work(key)
            self._failures.pop(key, None)
        except Exception as error:  # noqa: BLE001 - one bad object never stops the others
            failed = True
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            again = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * BACKOFF_FACTOR**failures)
            _log.warning("tick_failed key=%s error=%s", key, describe(error))
            _log.debug("tick_failed key=%s", key, exc_info=error)
        finally:
            self._active.discard(key)
        dirty = key in self._dirty
        self._dirty.discard(key)
        if dirty and not failed:
            self.add(key)
        elif again is not None:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(again, self._due, key)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)


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
