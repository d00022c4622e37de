"""A list-and-watch cache of one kind.

Belongs here: keeping a local copy true by bookmarks, a new list on 410, and jittered
back-off. Not here: what an object means. A handler hears the key of every change, never
the object, because by the time it acts the object may have changed again.

A watch that breaks goes on from the last version heard: a list costs the API server a
thousand times more. A new list is made only where that version is no longer known (410),
where the stream cannot be believed, or after WATCHES_MAX fruitless watches.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final

from reconciler.adapters.kubernetes.client import (
    KubernetesClient,
    KubernetesError,
    Object,
    UnreadableError,
)

PAGE: Final = 500
"""Objects per list page, as client-go asks for."""

PAGES_MAX: Final = 400
"""200,000 objects of one kind: twenty times the size this system is built for."""

BACKOFF_FIRST_S: Final = 0.2
BACKOFF_MAX_S: Final = 30.0
"""A broken API server is asked again at most twice a minute, at least every 30 s."""

BACKOFF_DOUBLINGS_MAX: Final = 10
"""Enough for BACKOFF_MAX_S; an outage of hours must not overflow a float."""

WATCHES_MAX: Final = 5
"""Fruitless watches in a row after which the version is doubted: some seconds."""

FRUITFUL_S: Final = 1.0
"""A watch that ends well but sooner, and brings nothing, counts as fruitless (client-go)."""

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
        self._version = ""
        self._fruitful = False
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
        self._version = ""
        failures = 0
        while True:
            self._fruitful = False
            try:
                await self._advance()
            except KubernetesError as error:
                if error.status != 429 and error.status < 500:
                    self._version = ""
                _log.warning("watch_interrupted %s", error)
            except (OSError, TimeoutError) as error:
                _log.warning("watch_interrupted path=%s %s", self._path, type(error).__name__)
            except ValueError as error:
                self._version = ""
                _log.warning("watch_unreadable path=%s %s", self._path, type(error).__name__)
            failures = 0 if self._fruitful else failures + 1
            if failures and failures % WATCHES_MAX == 0:
                self._version = ""
            await asyncio.sleep(_backoff_s(failures))

    async def _advance(self) -> None:
        """List when no version is known, then follow one watch stream to its end."""
        if not self._version:
            await self._list()
        loop = asyncio.get_running_loop()
        started = loop.time()
        stream = self._client.watch(self._path, resource_version=self._version)
        async with aclosing(stream):
            async for event in stream:
                self._take(event)
        if loop.time() - started >= FRUITFUL_S:
            self._fruitful = True

    def _take(self, event: Object) -> None:
        item = event["object"]
        version = _version(item)
        if event["type"] != "BOOKMARK":
            key = _key(item)
            if event["type"] == "DELETED":
                self._objects.pop(key, None)
            else:
                self._objects[key] = item
            self._on_change(key)
        self._version = version
        self._fruitful = True

    async def _list(self) -> None:
        seen: dict[Key, Object] = {}
        query = {"limit": str(PAGE)}
        for _ in range(PAGES_MAX):
            page = await self._client.request("GET", self._path, query=query)
            version = _version(page)
            for item in page.get("items") or []:
                seen[_key(item)] = item
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        else:
            # What lies beyond would look deleted.
            message = f"cannot list {self._path}: more than {PAGES_MAX} pages"
            raise UnreadableError(message)
        before = {key: _version(item) for key, item in self._objects.items()}
        after = {key: _version(item) for key, item in seen.items()}
        self._objects.clear()
        self._objects.update(seen)
        self._version = version
        self._synced.set()
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                self._on_change(key)


def _backoff_s(failures: int) -> float:
    """Return how long to pause; also after a good stream, for one that ends at each event."""
    bound = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(failures, BACKOFF_DOUBLINGS_MAX))
    return bound * random.uniform(0.5, 1.0)  # noqa: S311 - jitter


def _key(item: Object) -> Key:
    metadata = _metadata(item)
    try:
        return metadata.get("namespace", ""), metadata["name"]
    except KeyError:
        message = "cannot read object: metadata.name: is missing"
        raise UnreadableError(message) from None


def _version(item: Object) -> str:
    version = _metadata(item).get("resourceVersion")
    if not isinstance(version, str) or not version:
        message = "cannot read object: metadata.resourceVersion: is missing"
        raise UnreadableError(message)
    return version


def _metadata(item: Object) -> Object:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict):
        message = "cannot read object: metadata: is missing"
        raise UnreadableError(message)
    return metadata
