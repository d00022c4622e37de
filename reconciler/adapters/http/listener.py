"""A bound listener: address, TLS, limits on slow clients.

Belongs here: starting and stopping. Not here: routes.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

IDLE_TIMEOUT_S: Final = 15.0
"""Longest wait for a request's headers, on a new connection and between two requests."""
SHUTDOWN_TIMEOUT_S: Final = 5.0
"""Longest wait for requests in flight at the end: a registration takes milliseconds."""
HEADER_MAX_BYTES: Final = 8190


_wire_log = logging.getLogger(f"{__name__}.wire")


def _without_details(record: logging.LogRecord) -> bool:
    """Keep the class of a wire error: its text quotes headers, and one holds a bearer."""
    error = record.exc_info[1] if record.exc_info else None
    record.msg, record.args = "request_unreadable error=%s", (type(error).__name__,)
    record.exc_info = record.exc_text = None
    return True


_wire_log.addFilter(_without_details)


class ListenerError(Exception):
    """A listener cannot be started as it is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSFiles:
    """A certificate chain and its key, in PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen; port 0 takes a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@asynccontextmanager
async def listening(
    app: web.Application, address: Address, *, tls: TLSFiles | None
) -> AsyncIterator[str]:
    """Serve an application until the block ends.

    Yields:
        The base URL, with the port that was bound.

    Raises:
        ListenerError: The address is not on loopback and there is no TLS, the files are
            unreadable, or the address cannot be bound.
    """
    if tls is None and not address.is_loopback:
        message = f"cannot listen on {address.host}: TLS is required off loopback"
        raise ListenerError(message)
    context = None if tls is None else _context(tls)
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=IDLE_TIMEOUT_S,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        handle_signals=False,
        auto_decompress=False,
        logger=_wire_log,
        max_line_size=HEADER_MAX_BYTES,
        max_field_size=HEADER_MAX_BYTES,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            message = f"cannot listen on {address.host}:{address.port}: {error.strerror}"
            raise ListenerError(message) from error
        port = runner.addresses[0][1]
        host = f"[{address.host}]" if ":" in address.host else address.host
        yield f"{'http' if context is None else 'https'}://{host}:{port}"
    finally:
        await runner.cleanup()


def _context(tls: TLSFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        message = "cannot load TLS files: certificate and key must be a PEM pair"
        raise ListenerError(message) from error
    return context
