"""Edits at a rate, and how long each answer takes to be seen by somebody else.

Making the edits and watching for what is made of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from bench.crowd import Member
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.cache.packed import Key
from reconciler.adapters.kubernetes.transport.client import MERGE, KubernetesClient, KubernetesError
from tests.e2e.deploy.place import RECORD
from tests.integration.load.agents import until

COLLECTION: Final = f"/apis/{RECORD[0]}/v1alpha1/{RECORD[2]}"
ANSWERED_S: Final = 120.0
"""Until every edit is answered: a hundred times the target."""
LABEL: Final = "bench"


def mark_of(declared: Mapping[str, Any]) -> str | None:
    """Return the mark of what is declared or accepted; None when it has none."""
    mark = (declared.get("labels") or {}).get(LABEL)
    return None if mark is None else str(mark)


class Changes:
    """Edits labels of records, as the function does, and watches for their acceptance.

    Args:
        run_id: Tells its marks from those of another run.

    Attributes:
        unanswered: Edits that the API server did not answer: nobody's doing here.
    """

    def __init__(self, client: KubernetesClient, watcher: KubernetesClient, run_id: str) -> None:
        self._client = client
        self._cache = ObjectCache(watcher, COLLECTION, on_change=self._look)
        self._run_id = run_id
        self._sent: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self.unanswered = 0

    async def run(self, members: list[Member], *, rate: float, seconds: float) -> list[float]:
        """Make so many edits a second for so long; return the time of each in seconds.

        There must be at least as many members: of two edits of one the first may never show.
        """
        watch = asyncio.create_task(self._cache.run())
        try:
            async with asyncio.timeout(ANSWERED_S):
                await self._cache.wait_synced()
            await self._edit(members, rate=rate, seconds=seconds)
            await until(
                lambda: self._seen.keys() >= self._sent.keys(),
                timeout_s=ANSWERED_S,
                what="every change's answer",
            )
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        return [self._seen[mark] - at for mark, at in self._sent.items()]

    async def _edit(self, members: list[Member], *, rate: float, seconds: float) -> None:
        number, started = 0, time.monotonic()
        async with asyncio.TaskGroup() as group:
            while (now := time.monotonic()) - started < seconds:
                group.create_task(self._change(members[number * 7 % len(members)], number))
                number += 1
                await asyncio.sleep(max(0.0, started + number / rate - now))

    async def _change(self, member: Member, number: int) -> None:
        mark = f"{member.xr}-{self._run_id}-{number}"
        body = {"spec": {"declaration": {"labels": {LABEL: mark}}}}
        self._sent[mark] = time.monotonic()
        try:
            await self._client.request("PATCH", member.path, body=body, content_type=MERGE)
        except (KubernetesError, OSError, TimeoutError):
            del self._sent[mark]
            self.unanswered += 1

    def _look(self, key: Key) -> None:
        record = self._cache.get(key) or {}
        mark = mark_of((record.get("status") or {}).get("accepted") or {})
        if mark is not None and mark in self._sent:
            self._seen.setdefault(mark, time.monotonic())
