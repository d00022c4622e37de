"""An event loop whose clock jumps: hours of waiting cost nothing, and nothing real is waited for.

Virtual time. Nothing may wait for a socket, a thread or a process inside; whoever does is
told at once. Order is deterministic: what is ready runs first in, first out, and of two
timers of one moment the one that was set first.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

STEPS_MAX: Final = 5_000_000
"""Turns of the loop in one run: a world takes some ten thousand; beyond it something spins."""


class FrozenError(Exception):
    """Everything waits and no timer runs: the world would stand still for ever."""


class _Jump(selectors.SelectSelector):
    """Instead of waiting, moves the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        if timeout is None:
            raise FrozenError
        if self.turns > STEPS_MAX:
            message = f"the world takes more than {STEPS_MAX} turns"
            raise FrozenError(message)
        self.now_s += max(0.0, timeout)
        return []


class _Timer(asyncio.TimerHandle):
    """A timer that knows its place among those of its moment."""

    __slots__ = ("place",)
    place: int

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _Timer):
            return NotImplemented
        return (self.when(), self.place) < (other.when(), other.place)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time, beginning at zero seconds."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)
        self._timers = 0
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._jump.now_s

    def call_at(  # type: ignore[override]  # the callback's own arguments are nobody's business
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Set a timer; of two of one moment the first that was set goes off first."""
        timer = _Timer(when, callback, args, self, context)
        self._timers += 1
        timer.place = self._timers
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end in virtual time; what is left over is cancelled.

    Raises:
        FrozenError: Nothing would ever happen again, or too much did.
    """
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        main = loop.create_task(work)
        try:
            return loop.run_until_complete(main)
        finally:
            left = [task for task in asyncio.all_tasks(loop) if not task.done()]
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
