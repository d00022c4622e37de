"""The least any controller can do: watch the records, and answer each edit with one status write.

A program of its own (`python -m bench.echo KUBECONFIG`), on the driver's own cache and
client, without a store, rules or safety. Beside it the driver's reaction is read: what it
misses, the API server misses on this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Final

from bench.changes import COLLECTION, mark_of
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.cache.packed import Key
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import MERGE, KubernetesClient, KubernetesError

TRIES_MAX: Final = 10
"""Of one answer; a crowded API server refuses one now and then."""
PAUSE_S: Final = 0.1
"""After the first refusal; each further one waits so much longer."""
WORKERS: Final = 16
"""Answers at once, as the driver's; more of them starve each other."""
READY: Final = "watching"


class Echo:
    """Answers what it has not answered yet."""

    def __init__(self, client: KubernetesClient, answers: asyncio.TaskGroup) -> None:
        self._client = client
        self._answers = answers
        self._turns = asyncio.Semaphore(WORKERS)
        self._asked: set[str] = set()
        self.cache = ObjectCache(client, COLLECTION, on_change=self._changed)

    def _changed(self, key: Key) -> None:
        record = self.cache.get(key)
        if record is None:
            return
        mark = mark_of(record.get("spec", {}).get("declaration", {}))
        done = mark_of(record.get("status", {}).get("accepted", {}))
        if mark is not None and mark != done and mark not in self._asked:
            self._asked.add(mark)
            self._answers.create_task(self._answer(key, mark))

    async def _answer(self, key: Key, mark: str) -> None:
        path = COLLECTION.rpartition("/")
        place = f"{path[0]}/namespaces/{key[0]}/{path[2]}/{key[1]}/status"
        body = {"status": {"accepted": {"labels": {"bench": mark}}}}
        for tried in range(TRIES_MAX):
            with contextlib.suppress(KubernetesError, OSError, TimeoutError):
                async with self._turns:
                    await self._client.request("PATCH", place, body=body, content_type=MERGE)
                    return
            await asyncio.sleep((tried + 1) * PAUSE_S)
        self._asked.discard(mark)


async def echo(kubeconfig: Path) -> None:
    """Answer until killed."""
    async with asyncio.TaskGroup() as answers:
        one = Echo(await open_client(kubeconfig), answers)
        answers.create_task(one.cache.run())
        await one.cache.wait_synced()
        print(READY, flush=True)


if __name__ == "__main__":
    asyncio.run(echo(Path(sys.argv[1])))
