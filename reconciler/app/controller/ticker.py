"""Runs calls in intervals, whatever the result of the run before.

When, and what the last looks died of. Source: seed 000 "Operational model" (steady-state
ticker).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from reconciler.app.queue.work_queue import describe, heed_cancellation

REST_S: Final = 1.0
"""Between a look that took longer than its interval and the next."""

_log = logging.getLogger(__name__)


class Ticker:
    """Looks at intervals, and remembers what failed."""

    def __init__(self) -> None:
        self._faults: dict[str, str] = {}
        self.on_end: Callable[[str], None] = lambda _: None
        """Called with a look's name once it ended well."""

    @property
    def fault(self) -> str | None:
        """What the last looks died of, in one line; None when each ended well."""
        return "; ".join(self._faults.values()) or None

    async def run(
        self, name: str, look: Callable[[], Awaitable[object]], interval: timedelta
    ) -> None:
        """Look until cancelled, the first time after one interval.

        Args:
            name: What the log calls it.
            look: Looks once; what it raises is logged, and the next look comes as ever.
            interval: From the beginning of one look to that of the next.
        """
        loop = asyncio.get_running_loop()
        whole, took = interval.total_seconds(), 0.0
        while True:
            await asyncio.sleep(max(whole - took, min(REST_S, whole)))
            started = loop.time()
            try:
                await look()
                self._faults.pop(name, None)
                self.on_end(name)
            except Exception as error:  # noqa: BLE001 - the next one tries again
                heed_cancellation(error)
                self._faults[name] = describe(error)
                _log.warning("sweep_failed sweep=%s error=%s", name, describe(error))
            took = loop.time() - started
