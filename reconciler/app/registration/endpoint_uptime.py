"""Measures for how long nodes could reach the listener without a break.

That time, in memory, and proving it. A machine is never judged by a time in which our own
listener or store was not there; after a restart it starts from nothing. What lies between
the nodes and our listener cannot be seen from here: the brake of `recreation_brake` is for
that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

PROOF_S: Final = 5.0
"""How often it is proved: a twelfth of the shortest registration timeout, and one query."""

GAP_S: Final = 20.0
"""Seconds without a proof after which it starts again: a stopped process, or a stalled loop.
Three proofs may come late on a busy machine; a node asks again within as much."""


class EndpointUptime:
    """Proved every few seconds while the listener listens and the store answers."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._first: float | None = None
        self._last = 0.0

    async def prove(self, ask: Callable[[], Awaitable[None]], *, every_s: float = PROOF_S) -> None:
        """Prove it until cancelled, from when the listener listens.

        Args:
            ask: Asks the store one question; any error, or no answer within PROOF_S, is no proof.
            every_s: Seconds between two questions.
        """
        while True:
            try:
                async with asyncio.timeout(PROOF_S):
                    await ask()
                self.proved()
            except Exception:  # noqa: BLE001 - whatever it is, it proves nothing
                self.lost()
            await asyncio.sleep(every_s)

    def proved(self) -> None:
        """Note that a node could get through just now."""
        now = self._monotonic()
        if self._first is None or now - self._last > GAP_S:
            self._first = now
        self._last = now

    def lost(self) -> None:
        """Note that none could: the time starts again with the next proof."""
        self._first = None

    def lasts(self) -> timedelta:
        """For how long there was no break; nothing before the first proof."""
        if self._first is None or self._monotonic() - self._last > GAP_S:
            return timedelta()
        return timedelta(seconds=self._last - self._first)
