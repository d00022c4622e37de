"""The controller: keeps a cache of Machines and one worker per Machine.

A worker waits for its object's changes or for the time its last step named, so that one
slow or broken Machine delays no other; how many act at once is bounded. What a step does is
``lifecycle``'s. Only ``__main__`` and tests import this.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
from kubernetes.aio.client import ApiException

from dev.cloud.kube import MachineApi, Object
from dev.cloud.lifecycle import Lifecycle

LOG = logging.getLogger("demo-cloud")

# A step is one thread for a moment; more than this at once only makes two cores switch.
_STEPS_AT_ONCE = 8
# Safety net for machines that died by themselves, in seconds.
_LOOK_AGAIN_S = 30.0
_RETRY_FIRST_S = 0.2
_RETRY_MAX_S = 15.0


class Provider:
    """Runs the demo cloud until ``stop`` is set."""

    def __init__(self, api: MachineApi, lifecycle: Lifecycle) -> None:
        self._api = api
        self._lifecycle = lifecycle
        self._objects: dict[str, Object] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_STEPS_AT_ONCE)

    async def run(self, stop: asyncio.Event) -> None:
        """Serves every Machine of the cluster; answers when ``stop`` is set and workers ended.

        Idempotency: started again, it goes on from the state on disk.
        """
        watching = asyncio.create_task(self._watch())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        tasks = [watching, stopping, *self._workers.values()]
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        failure = results[0]
        if isinstance(failure, Exception):
            raise failure

    async def _watch(self) -> None:
        pause_s = _RETRY_FIRST_S
        while True:
            try:
                items, version = await self._api.list()
                self._replace(items)
                pause_s = _RETRY_FIRST_S
                async for kind, obj in self._api.watch(version):
                    if kind == "BOOKMARK":
                        continue
                    self._take(kind, obj)
            except (ApiException, aiohttp.ClientError, TimeoutError) as error:
                LOG.warning("watch ended: %s; listing again", _describe(error))
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spread
                pause_s = min(pause_s * 2, _RETRY_MAX_S)

    def _replace(self, items: list[Object]) -> None:
        present = {obj["metadata"]["uid"] for obj in items}
        for uid in set(self._objects) - present:
            self._forget(uid)
        for obj in items:
            self._take("MODIFIED", obj)

    def _take(self, kind: str, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        if kind == "DELETED":
            self._forget(uid)
            return
        self._objects[uid] = obj
        self._changed.setdefault(uid, asyncio.Event()).set()
        if uid not in self._workers:
            self._workers[uid] = asyncio.create_task(self._serve(uid), name=f"machine {uid}")

    def _forget(self, uid: str) -> None:
        self._objects.pop(uid, None)
        if uid in self._changed:
            self._changed[uid].set()

    async def _serve(self, uid: str) -> None:
        """Advances one Machine until it is gone."""
        changed = self._changed[uid]
        pause_s = _RETRY_FIRST_S
        try:
            while uid in self._objects:
                changed.clear()
                try:
                    async with self._slots:
                        look_again_s = await self._advance(uid)
                    pause_s = _RETRY_FIRST_S
                except Exception as error:  # noqa: BLE001 - the edge that keeps the others alive
                    LOG.warning("machine %s: %s", uid, _describe(error))
                    look_again_s = pause_s
                    pause_s = min(pause_s * 2, _RETRY_MAX_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(look_again_s):
                        await changed.wait()
        finally:
            self._workers.pop(uid, None)
            self._changed.pop(uid, None)

    async def _advance(self, uid: str) -> float:
        obj = self._objects.get(uid)
        if obj is None:
            return 0.0
        done = await self._lifecycle.advance(obj)
        # Its own write, so that the next step does not start from what it replaced; what the
        # watch brought meanwhile is newer and stays.
        if self._objects.get(uid) is obj:
            self._objects[uid] = done.obj
        return _LOOK_AGAIN_S if done.look_again_s is None else done.look_again_s


def _describe(error: BaseException) -> str:
    """One line without bodies: an API server may quote the object it refuses."""
    if isinstance(error, ApiException):
        return f"the API server answered {error.status}"
    if isinstance(error, (OSError, TimeoutError)):
        return f"{type(error).__name__}: {error.strerror if isinstance(error, OSError) else ''}"
    return type(error).__name__


@asynccontextmanager
async def running(provider: Provider) -> AsyncIterator[None]:
    """Runs ``provider`` while the block does; a failure of it ends the block's wait at exit."""
    stop = asyncio.Event()
    task = asyncio.create_task(provider.run(stop))
    try:
        yield
    finally:
        stop.set()
        await task
