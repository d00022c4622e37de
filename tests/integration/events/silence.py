"""A way to Postgres on which packets get lost without a word, as behind a firewall that forgot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

CHUNK = 65_536


class Way:
    """Carries connections until they are silenced; those that are made later are carried again."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._silent: list[bool] = [False]

    def silence(self) -> int:
        """Drop all that is said from now on on the connections there are; tell how many."""
        self._silent[-1] = True
        self._silent.append(False)
        return len(self._writers) // 2

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection both ways."""
        age = len(self._silent) - 1
        further, back = await asyncio.open_connection(*self._server)
        self._writers += [writer, back]
        for source, sink in ((reader, back), (further, writer)):
            pump = asyncio.create_task(self._pump(source, sink, age))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, age: int
    ) -> None:
        while said := await source.read(CHUNK):
            if not self._silent[age]:
                sink.write(said)
        # The end of a connection is a packet, too.
        if not self._silent[age]:
            sink.close()

    async def end(self) -> None:
        """Close everything."""
        for writer in self._writers:
            writer.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)


@asynccontextmanager
async def way_to(dsn: str) -> AsyncIterator[tuple[Way, str]]:
    """Open a way to a database, and give it with the DSN that leads over it."""
    parts = urlsplit(dsn)
    assert parts.hostname is not None
    assert parts.port is not None
    way = Way(parts.hostname, parts.port)
    server = await asyncio.start_server(way.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user = parts.netloc.rpartition("@")[0]
    netloc = f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"
    try:
        yield way, urlunsplit(parts._replace(netloc=netloc))
    finally:
        server.close()
        await way.end()
