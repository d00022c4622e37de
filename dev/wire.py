"""A wire between a program and a server that can be cut, or lead nowhere.

Passing bytes on, and no longer doing so. For tests of what becomes of a program when its
network goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

CHUNK: Final = 64 * 1024
"""Most bytes passed on at once."""


class Wire:
    """Connections of one loopback port, passed on to a server.

    Args:
        host: The server's.
        port: The server's.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._open: set[asyncio.StreamWriter] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self._refuses = False

    def cut(self) -> None:
        """End every connection and refuse new ones, until `mend`."""
        self._refuses = True
        for writer in self._open:
            writer.transport.abort()

    def swallow(self) -> None:
        """Pass nothing on and answer nothing, until `mend`; no end of a connection either."""
        self._passes.clear()

    def mend(self) -> None:
        """Let everything through again."""
        self._refuses = False
        self._passes.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on until either side ends it."""
        if self._refuses:
            writer.transport.abort()
            return
        self._open.add(writer)
        await self._passes.wait()
        there = None
        try:
            back, there = await asyncio.open_connection(*self._server)
            self._open.add(there)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there))
                group.create_task(self._pass(back, writer))
        except* OSError:
            pass
        finally:
            for end in (writer, there):
                if end is not None:
                    self._open.discard(end)
                    end.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(CHUNK):
            await self._passes.wait()
            target.write(data)
            await target.drain()
        await self._passes.wait()
        with suppress(OSError):
            target.write_eof()


@asynccontextmanager
async def wired(host: str, port: int) -> AsyncIterator[tuple[Wire, int]]:
    """Yield a wire to a server, and the loopback port where it begins."""
    wire = Wire(host, port)
    listener = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    try:
        yield wire, listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        wire.mend()
        wire.cut()
