"""The function's command: flags, credentials, serve.

Belongs here: starting and stopping. Not here: anything about a request. A function that
cannot start says why in one line and exits non-zero, so that its Deployment shows it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from pathlib import Path
from typing import Any, Final

import click
import grpc
from crossplane.function import cli as sdk
from crossplane.function import logging, runtime

from function.__version__ import __version__
from function.fn import FunctionRunner

_MEBIBYTE: Final = 1024 * 1024
_LAST_PORT: Final = 65_535
_CERTIFICATES: Final = ("tls.crt", "tls.key", "ca.crt")


@click.command()
@sdk.standard_options
@click.version_option(__version__, prog_name="function")
def cli(
    *,
    debug: bool,
    address: str,
    tls_certs_dir: str | None,
    insecure: bool,
    max_recv_message_size: int,
    max_send_message_size: int | None,
) -> None:
    """Serve the provisioning broker's composition function."""
    logging.configure(level=logging.Level.DEBUG if debug else logging.Level.INFO)
    credentials = None if insecure else _credentials(tls_certs_dir)
    sent = max_recv_message_size if max_send_message_size is None else max_send_message_size
    options = [
        ("grpc.max_receive_message_length", max_recv_message_size * _MEBIBYTE),
        ("grpc.max_send_message_length", sent * _MEBIBYTE),
        # Two processes on one port would share its traffic without a word.
        ("grpc.so_reuseport", 0),
    ]
    _claim(address)
    _interrupt_like_terminate()
    try:
        runtime.serve(
            FunctionRunner(), address, creds=credentials, insecure=insecure, options=options
        )
    except (RuntimeError, OSError, ValueError) as error:
        message = f"cannot serve: cannot listen on {address}"
        raise click.ClickException(message) from error


def _credentials(folder: str | None) -> grpc.ServerCredentials:
    if not folder:
        message = "cannot serve: give --tls-certs-dir, or --insecure outside a cluster"
        raise click.ClickException(message)
    certificate, key, authority = (str(Path(folder) / name) for name in _CERTIFICATES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        wanted = ", ".join(_CERTIFICATES)
        message = f"cannot serve: {folder} must hold {wanted} as PEM: {type(error).__name__}"
        raise click.ClickException(message) from error
    return runtime.load_credentials(folder)


def _claim(address: str) -> None:
    """Say in one line why an address cannot be had; gRPC's own error is several.

    Raises:
        ClickException: No address of the host can be bound.
    """
    host, _, port = address.rpartition(":")
    detail = "no such port"
    found: list[Any] = []
    # glibc takes 99999 for 34463 without a word.
    if port.isascii() and port.isdigit() and int(port[:6]) <= _LAST_PORT:
        try:
            found = socket.getaddrinfo(
                host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except (OSError, UnicodeError):
            detail = "no such host"
    for family, kind, protocol, _, endpoint in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(endpoint)
                return
        except OSError as error:
            detail = str(error.strerror)
    message = f"cannot serve: cannot listen on {address}: {detail}"
    raise click.ClickException(message)


def _interrupt_like_terminate() -> None:
    """Give the SDK's server a loop on which Ctrl-C ends it as SIGTERM does."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.add_signal_handler(signal.SIGINT, os.kill, os.getpid(), signal.SIGTERM)
