"""One relay as a process: what `broker serve` runs, without the rest of it.

Relaying until standard input ends, then one line of JSON with what it took. `bench.events`
starts it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

from reconciler.adapters.events.open_sink import open_sink
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from reconciler.adapters.postgres.outbox.relay_store import PostgresOutbox
from reconciler.app.outbox.relay import Relay, RelayPorts
from reconciler.ports.store.outbox import Backlog
from reconciler.wiring.relay import EVENTS


class Meter:
    """Keeps every lag."""

    def __init__(self) -> None:
        self.lags: list[float] = []

    def published(self, event_type: str, lag_s: float) -> None:  # noqa: ARG002 - the port's
        """Keep a lag."""
        self.lags.append(lag_s)

    def parked(self, event_type: str) -> None:
        """Nothing is parked here."""

    def failed(self, event_type: str) -> None:
        """Failures show in the rate."""

    def backlog(self, backlog: Backlog) -> None:
        """The backlog is the bench's own."""


async def main(dsn: str, sink_url: str) -> None:
    """Relay; a line on standard output says that it began."""
    sink = open_sink(sink_url, source="/bench", stream="bench" if "nats" in sink_url else None)
    outbox, meter, bell = PostgresOutbox(dsn), Meter(), NotifyChannel(dsn)
    ports = RelayPorts(outbox=outbox, sink=sink, meter=meter, monotonic=time.monotonic)
    relay = Relay(ports, batch=512)
    bell.listen(EVENTS, lambda _: relay.wake())
    await outbox.backlog()
    print("ready", file=sys.stderr, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    before = sum(os.times()[:2])
    tasks = [asyncio.create_task(bell.run()), asyncio.create_task(relay.run())]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await outbox.close()
    await sink.close()
    taken = {"lags": sorted(meter.lags), "cpu_s": sum(os.times()[:2]) - before}
    print(json.dumps(taken), file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
