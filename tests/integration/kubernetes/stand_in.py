"""A small stand-in of an API server, of one kind, that breaks when it is told to.

Lists by pages, watch streams with their history, and faults.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import count, repeat
from typing import Any, Final
from uuid import uuid4

from aiohttp import web

Object = dict[str, Any]

PATH: Final = "/apis/tests.plexsphere.com/v1/things"
NAMESPACE: Final = "shop"
OPEN_TIMEOUT_S: Final = 10.0


class Fault(Enum):
    """How a watch ends, once it has told what it knows."""

    ENDED = "the server ends the stream"
    DROPPED = "the connection is gone"
    EXPIRED = "an ERROR event says 410"
    FAILED = "an ERROR event says 500"
    MALFORMED = "a line is no JSON"
    SHAPELESS = "a line is no watch event"
    NAMELESS = "an event's object has no metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request.

    Attributes:
        at: When, by the monotonic clock.
        watch: Whether it was a watch; else one page of a list.
        probe: Whether it was for one object alone, to see where the server stands.
        version: The resource version that the watch starts from.
        connection: Which of the server's connections it came over.
        authorization: Its header.
    """

    at: float
    watch: bool
    probe: bool
    version: int
    connection: int
    authorization: str | None


class StandIn:
    """The objects of one kind, their history, and what goes wrong next.

    Attributes:
        page: Objects per page, whatever a client asks for.
        requests: Every request, oldest first.
        streams: Watches that are open.
        told: The last version that a watch told of.
        page_faults: Statuses for the next pages of lists, None for a good one.
        watch_faults: Statuses or ends for the next watches, None for a good one.
    """

    def __init__(self) -> None:
        self.page = 500
        self.requests: list[Asked] = []
        self.streams = 0
        self.told = 0
        self.page_faults: Iterator[int | None] = repeat(None)
        self.watch_faults: Iterator[int | Fault | None] = repeat(None)
        self._version = 100
        self._known_from = 100
        self._objects: dict[str, Object] = {}
        self._history: list[tuple[int, str, Object]] = []
        self._listeners: set[asyncio.Event] = set()
        self._connections: dict[object, int] = {}
        self._numbers = count()
        self._cuts = 0

    @property
    def lists(self) -> list[Asked]:
        return [request for request in self.requests if not request.watch and not request.probe]

    @property
    def watches(self) -> list[Asked]:
        return [request for request in self.requests if request.watch]

    @property
    def version(self) -> int:
        return self._version

    def put(self, name: str) -> Object:
        """Make an object, or change it when it exists."""
        before = self._objects.get(name)
        uid = str(uuid4()) if before is None else before["metadata"]["uid"]
        metadata = {"name": name, "namespace": NAMESPACE, "uid": uid}
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        self._objects[name] = {"kind": "Thing", "metadata": metadata}
        self._tell("ADDED" if before is None else "MODIFIED", self._objects[name])
        return self._objects[name]

    def put_untold(self, name: str) -> Object:
        """Make an object of which no watch tells, however it was broken."""
        made = self.put(name)
        self._history.pop()
        return made

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._version += 1
        gone = self._objects.pop(name)
        metadata = {**gone["metadata"], "resourceVersion": str(self._version)}
        self._tell("DELETED", {**gone, "metadata": metadata})

    def bookmark(self) -> int:
        """Let other kinds move the version on, and tell so."""
        self._version += 10
        metadata = {"resourceVersion": str(self._version)}
        self._tell("BOOKMARK", {"kind": "Thing", "metadata": metadata})
        return self._version

    def compact(self) -> None:
        """Forget the history: older versions are answered with 410."""
        self._known_from = self._version
        self._history.clear()

    def snapshot(self) -> tuple[int, dict[str, Object]]:
        """Return what a backup would hold."""
        return self._version, dict(self._objects)

    def restore(self, snapshot: tuple[int, dict[str, Object]], *, bump: int = 0) -> None:
        """Go back to a backup: watches end; one from a later version is taken, and told nothing.

        Args:
            snapshot: What it held.
            bump: How many versions to leap over.
        """
        self._version, self._objects = snapshot[0] + bump, dict(snapshot[1])
        self._known_from = self._version
        self._history.clear()
        self.cut()

    def cut(self) -> None:
        """Drop the open watches."""
        self._cuts += 1
        self._wake()

    def break_watches(self, *faults: int | Fault) -> None:
        """Have the next watches fail, and the later ones not."""
        self.watch_faults = _then_none(faults)

    def break_pages(self, *faults: int | None) -> None:
        """Have the next pages fail, and the later ones not."""
        self.page_faults = _then_none(faults)

    @asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[str]:
        """Listen on loopback; yield the URL."""
        app = web.Application()
        app.router.add_get(PATH, self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self.cut()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        watch = request.query.get("watch") == "true"
        probe = request.query.get("limit") == "1"
        self.requests.append(
            Asked(
                at=time.monotonic(),
                watch=watch,
                probe=probe,
                version=int(request.query.get("resourceVersion", "0")),
                connection=self._connections.setdefault(request.transport, next(self._numbers)),
                authorization=request.headers.get("Authorization"),
            )
        )
        if probe:
            return _page(self._version, list(self._objects.values())[:1])
        if not watch:
            return self._list(request)
        fault = next(self.watch_faults)
        if isinstance(fault, int):
            return _status(fault)
        news = asyncio.Event()
        self._listeners.add(news)
        self.streams += 1
        try:
            return await self._stream(request, fault, news)
        finally:
            self._listeners.discard(news)
            self.streams -= 1

    def _list(self, request: web.Request) -> web.Response:
        fault = next(self.page_faults)
        if fault is not None:
            return _status(fault)
        first = int(request.query.get("continue", "0"))
        names = sorted(self._objects)
        last = first + self.page
        rest = {"continue": str(last)} if last < len(names) else {}
        return _page(self._version, [self._objects[name] for name in names[first:last]], **rest)

    async def _stream(
        self, request: web.Request, fault: Fault | None, news: asyncio.Event
    ) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        cursor, cuts = int(request.query["resourceVersion"]), self._cuts
        if cursor < self._known_from:
            await _write(response, *_error(410))
            return response
        deadline = time.monotonic() + OPEN_TIMEOUT_S
        while time.monotonic() < deadline:
            news.clear()
            for version, kind, item in [entry for entry in self._history if entry[0] > cursor]:
                await _write(response, kind, item)
                cursor = self.told = version
            if cuts != self._cuts:
                fault = Fault.DROPPED
            if fault is not None:
                await _fail(request, response, fault)
                return response
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await news.wait()
        return response

    def _tell(self, kind: str, item: Object) -> None:
        self._history.append((self._version, kind, item))
        self._wake()

    def _wake(self) -> None:
        for listener in self._listeners:
            listener.set()


def _then_none(faults: Iterable[Any]) -> Iterator[Any]:
    pending = deque(faults)
    while True:
        yield pending.popleft() if pending else None


def _page(version: int, items: list[Object], **rest: str) -> web.Response:
    metadata = {"resourceVersion": str(version), **rest}
    return web.json_response({"kind": "ThingList", "metadata": metadata, "items": items})


def _status(status: int) -> web.Response:
    body = {"kind": "Status", "code": status, "reason": "Scripted", "message": "as told"}
    return web.json_response(body, status=status)


def _error(status: int) -> tuple[str, Object]:
    return "ERROR", {"kind": "Status", "code": status, "reason": "Scripted", "message": "as told"}


async def _write(response: web.StreamResponse, kind: str, item: Object) -> None:
    line = json.dumps({"type": kind, "object": item}).encode() + b"\n"
    # Two chunks, as a network would: a line may come in pieces.
    await response.write(line[:10])
    await response.write(line[10:])


async def _fail(request: web.Request, response: web.StreamResponse, fault: Fault) -> None:
    match fault:
        case Fault.ENDED:
            pass
        case Fault.DROPPED:
            await response.write(b'{"type": "ADD')
            if request.transport is not None:
                request.transport.abort()
        case Fault.EXPIRED:
            await _write(response, *_error(410))
        case Fault.FAILED:
            await _write(response, *_error(500))
        case Fault.MALFORMED:
            await response.write(b'{"type": oops\n')
        case Fault.SHAPELESS:
            await response.write(b'["no", "event"]\n')
        case Fault.NAMELESS:
            await _write(response, "ADDED", {"kind": "Thing"})
