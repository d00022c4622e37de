"""A real HTTP server that takes events, or answers something else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from cloudevents.core.bindings import http
from cloudevents.core.bindings.http import HTTPMessage
from cloudevents.core.formats.json import JSONFormat


class Consumer:
    """What came, and what it answers."""

    def __init__(self) -> None:
        self.got: list[HTTPMessage] = []
        self.status = 204
        self.headers: dict[str, str] = {}

    async def answer(self, request: web.Request) -> web.Response:
        """Take one event."""
        body = await request.read()
        self.got.append(HTTPMessage(headers=dict(request.headers), body=body))
        return web.Response(status=self.status, headers=self.headers)

    def taken(self) -> Sequence[bytes]:
        """Read what came as the SDK's consumers do; each as a structured event."""
        return [JSONFormat().write(http.from_http_event(message)) for message in self.got]

    def events(self) -> list[dict[str, Any]]:
        """Return what came, each event once, in the order of its first arrival."""
        read = [json.loads(item) for item in self.taken()]
        return list({item["id"]: item for item in reversed(read)}.values())[::-1]


@asynccontextmanager
async def consuming(query: str = "") -> AsyncIterator[tuple[Consumer, str]]:
    """Serve on a free port of loopback; yields the consumer and its URL with a query."""
    consumer = Consumer()
    app = web.Application()
    app.router.add_post("/{tail:.*}", consumer.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield consumer, f"http://127.0.0.1:{runner.addresses[0][1]}/events?{query}"
    finally:
        await runner.cleanup()
