"""Accepting connections, as many as a process can bear.

Binding, the cap, the limits of a handshake.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

CONNECTIONS_MAX: Final = 4096
"""Open connections of one listener, handshakes included: far more than nodes that register
within the same seconds, and few enough to be held in memory."""
FILES_RESERVED: Final = 256
"""Open files that connections leave to Postgres, watches and certificates."""
HANDSHAKE_TIMEOUT_S: Final = 10.0
"""Longest TLS handshake: two round trips, on the slowest of lines."""
CLOSING_TIMEOUT_S: Final = 5.0
"""How long a peer may take to agree that a TLS connection ends."""
BACKLOG: Final = 1024
"""Connections that the kernel holds until they are accepted; it may hold fewer."""
ACCEPTS_AT_ONCE: Final = 100
"""Connections accepted before anything else gets its turn."""
PAUSE_S: Final = 0.1
"""After an accept that failed for want of files or memory, which only time fixes."""
REPORT_INTERVAL_S: Final = 10.0
"""Between two lines about connections that were turned away."""

_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_log = logging.getLogger(__name__)


def connections_max() -> int:
    """Return how many connections a listener may hold, given the limit of open files.

    Each of the two listeners counts for itself, so both together leave the reserve.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, (soft - FILES_RESERVED) // 2))


@asynccontextmanager
async def accepting(
    server: web.Server, host: str, port: int, *, context: ssl.SSLContext | None
) -> AsyncIterator[int]:
    """Accept connections for a server until the block ends; those that are open stay open.

    Yields:
        The port that was bound.

    Raises:
        OSError: The address cannot be bound.
    """
    listeners = await _bound(host, port)
    door = _Door(server, context)
    for listener in listeners:
        door.open(listener)
    try:
        yield listeners[0].getsockname()[1]
    finally:
        for listener in listeners:
            door.close(listener)
        await door.give_up()


class _Door:
    """Accepts for one server, from any number of sockets."""

    def __init__(self, server: web.Server, context: ssl.SSLContext | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._opening: dict[asyncio.Task[None], asyncio.Protocol] = {}
        self._server = server
        self._context = context
        self._max = connections_max()
        self._refused = 0
        self._report_at_s = 0.0

    def open(self, listener: socket.socket) -> None:
        """Accept from a socket, unless it is closed."""
        if listener.fileno() >= 0:
            self._loop.add_reader(listener, self._accept, listener)

    def close(self, listener: socket.socket) -> None:
        """Close a socket."""
        self._loop.remove_reader(listener)
        listener.close()

    async def give_up(self) -> None:
        """End the handshakes under way."""
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)

    def _accept(self, listener: socket.socket) -> None:
        # Counted once: nothing else runs meanwhile, and thousands are not counted fast.
        free = self._max - self._there()
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("accept_failed errno=%s", errno.errorcode.get(error.errno or 0))
                self._loop.remove_reader(listener)
                self._loop.call_later(PAUSE_S, self.open, listener)
                return
            if free <= 0:
                connection.close()
                self._count_refusal()
            else:
                free -= 1
                handler = self._server()
                task = self._loop.create_task(self._open(connection, handler))
                self._opening[task] = handler
                task.add_done_callback(self._opening.pop)

    def _there(self) -> int:
        """Return how many connections are open or opening."""
        # One that is opening may be among the server's already, for a moment.
        return len({*self._server.connections, *self._opening.values()})

    async def _open(self, connection: socket.socket, handler: asyncio.Protocol) -> None:
        limits = {}
        if self._context is not None:
            limits = {
                "ssl_handshake_timeout": HANDSHAKE_TIMEOUT_S,
                "ssl_shutdown_timeout": CLOSING_TIMEOUT_S,
            }
        try:
            await self._loop.connect_accepted_socket(
                lambda: handler, connection, ssl=self._context, **limits
            )
        except OSError as error:  # ssl.SSLError is one, and so is a handshake that takes too long
            _log.debug("handshake_failed error=%s", type(error).__name__)

    def _count_refusal(self) -> None:
        self._refused += 1
        now_s = time.monotonic()
        if now_s >= self._report_at_s:
            _log.warning("connections_refused count=%d max=%d", self._refused, self._max)
            self._refused = 0
            self._report_at_s = now_s + REPORT_INTERVAL_S


async def _bound(host: str, port: int) -> list[socket.socket]:
    """Bind every address of a host, on one port."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listeners: list[socket.socket] = []
    absent = OSError(errno.EADDRNOTAVAIL, "address not available")
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                listeners.append(
                    _listener(family, kind, protocol, (address[0], port, *address[2:]))
                )
            except OSError as error:
                # A name may have an IPv6 address on a machine that has none.
                if error.errno not in _ABSENT:
                    raise
                absent = error
            else:
                port = listeners[0].getsockname()[1]
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    if not listeners:
        raise absent
    return listeners


def _listener(
    family: int, kind: int, protocol: int, address: tuple[str | int, ...]
) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener
