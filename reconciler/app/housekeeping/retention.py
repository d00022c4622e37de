"""Retention: what is over leaves the store after a while, beside everything else.

The passes, their batches and their pauses. Safe with several processes: the store lets one
at a time. Source: docs/operations/retention.md.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from reconciler.ports.store.retention import Remains, RetentionStore

BATCH: Final = 500
"""Rows of one transaction: it holds its locks for some milliseconds."""
BATCHES_MAX: Final = 2_000
"""Batches of one pass and kind, a million rows: the rest is for the next pass."""
PASS_EVERY_S: Final = 3600.0
"""What is kept for days may stay an hour longer."""
FIRST_PASS_S: Final = 60.0
"""After the start, which has other work, and soon enough for a process that is often restarted."""

_log = logging.getLogger(__name__)

Keep = Mapping[Remains, timedelta | None]
"""How long each kind is kept after it is over; None for ever."""


class Retention:
    """Removes what is over."""

    def __init__(self, store: RetentionStore, keep: Keep) -> None:
        self._store = store
        self._keep = keep

    async def run(self) -> None:
        """Make a pass every hour until cancelled; one that fails is made again."""
        pause_s = FIRST_PASS_S
        while True:
            # Replicas that started together need not ask together.
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause_s = PASS_EVERY_S
            try:
                await self.make_pass()
            except Exception as error:  # noqa: BLE001 - nothing waits for it; nothing may stop for it
                _log.warning("retention_failed error=%s", type(error).__name__)

    async def make_pass(self) -> Mapping[Remains, int]:
        """Remove all that is over; return how many rows of each kind went.

        Raises:
            StoreUnavailableError: The database cannot be reached; what went before is gone.

        Idempotency: a second pass finds what became over meanwhile.
        """
        removed = {remains: await self._remove(remains) for remains in Remains}
        if any(removed.values()):
            counts = " ".join(f"{remains}={count}" for remains, count in removed.items())
            _log.info("retention_done %s", counts)
        return removed

    async def _remove(self, remains: Remains) -> int:
        keep = self._keep[remains]
        if keep is None:
            return 0
        removed = 0
        after: UUID | None = None
        for _ in range(BATCHES_MAX):
            batch = await self._store.remove(remains, keep=keep, after=after, limit=BATCH)
            if batch is None:
                break
            removed += batch.removed
            after = batch.last
            if after is None:
                break
        return removed
