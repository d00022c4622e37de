"""A list-and-watch cache of one kind.

Belongs here: keeping a local copy true by bookmarks, a new list on 410, and jittered
back-off. Not here: what an object means. A handler hears the key of every change, never
the object, because by the time it acts the object may have changed again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final

from reconciler.adapters.kubernetes.client import KubernetesClient, KubernetesError, Object

PAGE: Final = 500
"""Objects per list page, as client-go asks for."""

PAGES_MAX: Final = 400
"""200,000 objects of one kind: twenty times the size this system is built for."""

BACKOFF_FIRST_S: Final = 0.2
BACKOFF_MAX_S: Final = 30.0
"""A broken API server is asked again at most twice a minute, at least every 30 s."""

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped) and name."""

_log = logging.getLogger(__name__)


class ObjectCache:
    """The objects of one kind, eventually true."""

    def __init__(
        self, client: KubernetesClient, path: str, *, on_change: Callable[[Key], None]
    ) -> None:
        self._client = client
        self._path = path
        self._on_change = on_change
        self._objects: dict[Key, Object] = {}
        self._synced = asyncio.Event()

    def get(self, key: Key) -> Object | None:
        """Return the cached object, or None. The caller must not change it."""
        return self._objects.get(key)

    def items(self) -> Mapping[Key, Object]:
        """Return the cached objects; a live view."""
        return self._objects

    async def wait_synced(self) -> None:
        """Wait until the first list has arrived."""
        await self._synced.wait()

    @property
    def synced(self) -> bool:
        """Tell whether the first list has arrived."""
        return self._synced.is_set()

    async def run(self) -> None:
        """Keep the cache true until cancelled. Idempotency: starting anew lists anew."""
        failures = 0
        while True:
            try:
                version = await self._list()
                failures = 0
                await self._follow(version)
            except KubernetesError as error:
                failures = 0 if error.status == 410 else failures + 1
                _log.warning("watch_interrupted %s", error)
            except (OSError, TimeoutError, ValueError) as error:
                failures += 1
                _log.warning("watch_interrupted path=%s %s", self._path, type(error).__name__)
            if failures:
                bound = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2**failures)
                await asyncio.sleep(bound * random.uniform(0.5, 1.0))  # noqa: S311 - jitter

    async def _list(self) -> str:
        seen: dict[Key, Object] = {}
        query = {"limit": str(PAGE)}
        version = ""
        for _ in range(PAGES_MAX):
            page = await self._client.request("GET", self._path, query=query)
            for item in page.get("items", []):
                seen[_key(item)] = item
            version = page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        previous = self._objects
        self._objects = seen
        self._synced.set()
        for key in previous.keys() | seen.keys():
            if _version(previous.get(key)) != _version(seen.get(key)):
                self._on_change(key)
        return version

    async def _follow(self, version: str) -> None:
        """Follow watch streams from a version until the server asks for a new list."""
        while True:
            async for event in self._client.watch(self._path, resource_version=version):
                item = event["object"]
                version = item["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                key = _key(item)
                if event["type"] == "DELETED":
                    self._objects.pop(key, None)
                else:
                    self._objects[key] = item
                self._on_change(key)


def _key(item: Object) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version(item: Object | None) -> str:
    return "" if item is None else str(item["metadata"].get("resourceVersion", ""))
