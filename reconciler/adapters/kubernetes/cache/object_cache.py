"""A list-and-watch cache of one kind.

Keeping a local copy true by bookmarks, a new list on 410, and jittered back-off. A handler
hears the key of every change, never the object, because by the time it acts the object may
have changed again.

A watch that breaks goes on from the last version heard: a list costs the API server a
thousand times more. A new list is made only where that version is no longer known (410), where
the API server has not come to it yet because it was restored from a backup, where the stream
cannot be believed or was silent for too long, after WATCHES_MAX fruitless watches, or when
somebody found the cache wrong.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final

from reconciler.adapters.kubernetes.cache.packed import (
    Key,
    Packed,
    PackedObjects,
    key_of,
    pack,
    version_of,
)
from reconciler.adapters.kubernetes.transport import client
from reconciler.adapters.kubernetes.transport.client import METADATA_LIST, KubernetesClient
from reconciler.adapters.kubernetes.transport.responses import (
    KubernetesError,
    Object,
    UnreadableError,
)
from reconciler.domain.guard.circuit_breaker import BreakerCause, shrank

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

ANEW_MIN_S: Final = 60.0
"""Between lists that somebody asks for: what one list did not fix, ten would not."""

LEAP: Final = 100_000_000
"""More versions than etcd counts in hours. One that is restored is told to leap over all that it
may have counted (`etcdutl snapshot restore --bump-revision`, usually by ten times as many)."""

CHUNK: Final = 100
"""Objects of a list that are packed and told of before others get their turn: some 10 ms."""

_log = logging.getLogger(__name__)


class ObjectCache:
    """The objects of one kind, eventually true."""

    def __init__(
        self,
        client: KubernetesClient,
        path: str,
        *,
        on_change: Callable[[Key], None],
        on_doubt: Callable[[BreakerCause], None] = lambda _cause: None,
    ) -> None:
        """Begin empty.

        Args:
            client: The API server.
            path: The kind's collection.
            on_change: Hears the key of every change.
            on_doubt: Hears why an answer may be of another time than it claims.
        """
        self._client = client
        self._path = path
        self._on_change = on_change
        self._on_doubt = on_doubt
        self._objects: dict[Key, Packed] = {}
        self._view = PackedObjects(self._objects)
        self._newest = 0
        self._heard_at: float | None = None
        self._listed_at = -math.inf
        self._watching: asyncio.Timeout | None = None
        self._doubted = False
        self._version = ""
        self._fruitful = False
        self._synced = asyncio.Event()

    def get(self, key: Key) -> Object | None:
        """Return a copy of the cached object, or None."""
        return self._view.get(key)

    def items(self) -> Mapping[Key, Object]:
        """Return the cached objects; a live view."""
        return self._view

    def version(self, key: Key) -> str | None:
        """Return the resourceVersion of a cached object, or None."""
        found = self._objects.get(key)
        return None if found is None else found.version

    def uids(self) -> list[str]:
        """Return the uids of the cached objects, in no order."""
        return [packed.uid for packed in self._objects.values() if packed.uid]

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing was heard; 0 before the first list."""
        if self._heard_at is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._heard_at

    async def wait_synced(self) -> None:
        """Wait until the first list has arrived."""
        await self._synced.wait()

    @property
    def synced(self) -> bool:
        """Tell whether the first list has arrived."""
        return self._synced.is_set()

    def list_anew(self) -> None:
        """Note that it is wrong: a list follows, ANEW_MIN_S after the last one at the earliest.

        Idempotency: asked for again before it came, it is still one.
        """
        if not self._doubted:
            _log.warning("cache_doubted path=%s", self._path)
        self._doubted = True
        if self._watching is not None and not self._watching.expired():
            self._watching.reschedule(self._listed_at + ANEW_MIN_S)

    async def run(self) -> None:
        """Keep the cache true until cancelled. Idempotency: a restart lists again."""
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
        loop = asyncio.get_running_loop()
        if self._version and (self._is_due(loop.time()) or await self._is_ahead()):
            self._version = ""
        if not self._version:
            await self._list()
        started = loop.time()
        stream = self._client.watch(self._path, resource_version=self._version)
        doubt = asyncio.timeout_at(self._listed_at + ANEW_MIN_S if self._doubted else None)
        self._watching = doubt
        try:
            async with doubt, aclosing(stream):
                async for event in stream:
                    self._take(event)
        except TimeoutError:
            if doubt.expired():
                self._fruitful = True
                return
            # A stream that leads nowhere: another one might, too, and a list is heard at once.
            if self.silent_s >= client.WATCH_SILENCE_S:
                self._version = ""
            raise
        finally:
            self._watching = None
        if loop.time() - started >= FRUITFUL_S:
            self._fruitful = True

    def _is_due(self, now: float) -> bool:
        """Tell whether somebody asked for a list that is not too soon."""
        return self._doubted and now - self._listed_at >= ANEW_MIN_S

    async def _is_ahead(self) -> bool:
        """Tell whether the last version heard is one that the API server has not come to.

        It takes a watch from there all the same, and tells nothing until it has. One object
        alone is asked for: what counts is the version of the answer, which is etcd's newest.
        """
        query = {"limit": "1"}
        page = await self._client.request("GET", self._path, query=query, accept=METADATA_LIST)
        return _number(version_of(page)) < self._newest

    def _take(self, event: Object) -> None:
        item = event["object"]
        version = version_of(item)
        if event["type"] != "BOOKMARK":
            key = key_of(item)
            if event["type"] == "DELETED":
                self._objects.pop(key, None)
            else:
                self._replace(key, pack(item))
            self._on_change(key)
        self._heard(version)
        self._fruitful = True

    async def _list(self) -> None:
        seen: dict[Key, Packed] = {}
        query = {"limit": str(PAGE)}
        for _ in range(PAGES_MAX):
            page = await self._client.request("GET", self._path, query=query)
            version = version_of(page)
            for number, item in enumerate(page.get("items") or [], start=1):
                seen[key_of(item)] = pack(item)
                if number % CHUNK == 0:
                    await asyncio.sleep(0)
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        else:
            # What lies beyond would look deleted.
            message = f"cannot list {self._path}: more than {PAGES_MAX} pages"
            raise UnreadableError(message)
        await self._take_over(seen, version)

    async def _take_over(self, seen: dict[Key, Packed], version: str) -> None:
        if self._synced.is_set() and shrank(len(self._objects), len(seen)):
            self._on_doubt(BreakerCause.LIST_SHRANK)
        if self._newest and not 0 <= _number(version) - self._newest < LEAP:
            self._on_doubt(BreakerCause.WENT_BACK)
        before = {key: one.version for key, one in self._objects.items()}
        after = {key: one.version for key, one in seen.items()}
        for key in before.keys() - after.keys():
            del self._objects[key]
        for key, one in seen.items():
            self._replace(key, one)
        self._newest = 0
        self._heard(version)
        self._listed_at = asyncio.get_running_loop().time()
        self._doubted = False
        self._synced.set()
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        for number, key in enumerate(changed, start=1):
            self._on_change(key)
            if number % CHUNK == 0:
                await asyncio.sleep(0)

    def _replace(self, key: Key, one: Packed) -> None:
        known = self._objects.get(key)
        same = known is not None and known.uid == one.uid and one.uid != ""
        if known is not None and same and one.generation < known.generation:
            self._on_doubt(BreakerCause.WENT_BACK)
        self._objects[key] = one

    def _heard(self, version: str) -> None:
        self._version = version
        self._newest = max(self._newest, _number(version))
        self._heard_at = asyncio.get_running_loop().time()


def _backoff_s(failures: int) -> float:
    """Return how long to pause; also after a good stream, for one that ends at each event."""
    bound = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(failures, BACKOFF_DOUBLINGS_MAX))
    return bound * random.uniform(0.5, 1.0)  # noqa: S311 - jitter


def _number(version: str) -> int:
    """Return a version's place in time: etcd's revision, as every API server counts."""
    return int(version) if version.isdecimal() else 0
