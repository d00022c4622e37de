"""A bound listener: address, TLS, limits on slow clients.

Starting and stopping.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from multidict import CIMultiDict

from reconciler.adapters.http.certificate import RenewedCertificate
from reconciler.adapters.http.connections import accepting

IDLE_TIMEOUT_S: Final = 15.0
"""Longest wait for a request's headers, on a new connection and between two requests."""
SHUTDOWN_TIMEOUT_S: Final = 5.0
"""Longest wait for requests in flight at the end: a registration takes milliseconds."""
LINGERING_S: Final = 1.0
"""How long the rest of a body is waited for after the answer, so that the client may read it."""
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
    """An address to listen on; port 0 takes a free one."""

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
        message = (
            f"cannot listen on {address.host}: TLS files are required for an address off loopback"
        )
        raise ListenerError(message)
    certificate = None if tls is None else _certificate(tls)
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=IDLE_TIMEOUT_S,
        lingering_time=LINGERING_S,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        handle_signals=False,
        auto_decompress=False,
        logger=_wire_log,
        max_line_size=HEADER_MAX_BYTES,
        max_field_size=HEADER_MAX_BYTES,
    )
    await runner.setup()
    if runner.server is not None:
        _keep_nameless(runner.server)
    renewal = None if certificate is None else asyncio.create_task(certificate.watch())
    try:
        async with _accepting(runner, address, certificate) as port:
            host = f"[{address.host}]" if ":" in address.host else address.host
            yield f"{'http' if certificate is None else 'https'}://{host}:{port}"
    finally:
        if renewal is not None:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
        await runner.cleanup()


def _keep_nameless(server: web.Server) -> None:
    """Let no answer name aiohttp and its version, not even one that aiohttp gives by itself."""
    made = server.request_factory

    def make(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        write_headers = writer.write_headers

        async def without_name(status_line: str, headers: CIMultiDict[str]) -> None:
            headers.popall(hdrs.SERVER, None)
            await write_headers(status_line, headers)

        writer.write_headers = without_name  # type: ignore[method-assign]
        return made(message, payload, protocol, writer, task)

    server.request_factory = make


@asynccontextmanager
async def _accepting(
    runner: web.AppRunner, address: Address, certificate: RenewedCertificate | None
) -> AsyncIterator[int]:
    if runner.server is None:
        message = "cannot listen: the application is not set up"
        raise ListenerError(message)
    context = None if certificate is None else certificate.context
    async with AsyncExitStack() as stack:
        try:
            port = await stack.enter_async_context(
                accepting(runner.server, address.host, address.port, context=context)
            )
        except OSError as error:
            message = f"cannot listen on {address.host}:{address.port}: {error.strerror}"
            raise ListenerError(message) from error
        yield port


def _certificate(tls: TLSFiles) -> RenewedCertificate:
    try:
        return RenewedCertificate(tls.certificate, tls.key)
    except (OSError, ValueError) as error:
        message = "cannot load TLS files: certificate and key must be a PEM pair"
        raise ListenerError(message) from error
