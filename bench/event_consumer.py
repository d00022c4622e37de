"""A consumer of events over HTTP, as small as one can be: the other end of a measurement.

Taking structured events and telling how many came and whether each aggregate's were in
order. A process of its own; `bench.events` starts it.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import web


class Consumer:
    """Remembers the last number of each aggregate."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._count = 0
        self._disorder = 0

    async def take(self, request: web.Request) -> web.Response:
        """Take one event."""
        event = json.loads(await request.read())
        self._count += 1
        if self._last.get(event["partitionkey"], "") >= event["sequence"]:
            self._disorder += 1
        self._last[event["partitionkey"]] = event["sequence"]
        return web.Response(status=204)

    async def tell(self, _: web.Request) -> web.Response:
        """Tell what came so far."""
        return web.json_response({"count": self._count, "disorder": self._disorder})


async def main() -> None:
    """Serve until standard input ends; the first line of output is the URL."""
    consumer = Consumer()
    app = web.Application()
    app.router.add_post("/events", consumer.take)
    app.router.add_get("/events", consumer.tell)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/events", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
