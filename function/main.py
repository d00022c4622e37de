"""The function's command: flags, credentials, serve.

Reading flags and wiring. A function that cannot start says why in one line and exits
non-zero, so that its Deployment shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import grpc
import uvloop
from crossplane.function import cli as sdk
from crossplane.function import logging, runtime

from function.__version__ import __version__
from function.fn import FunctionRunner
from function.operating import memory_dumps, server
from function.operating.calls import CallInterceptor
from function.operating.metrics import Metrics
from function.operating.probes import Endpoint, Probes

METRICS_ADDRESS: Final = "0.0.0.0:8080"
"""Where Crossplane's package runtime tells Prometheus to look."""

_LAST_PORT: Final = 65_535
_CERTIFICATES: Final = ("tls.crt", "tls.key", "ca.crt")

_COLLECTED_AFTER: Final = (10_000, 10, 10)
"""Values made before the young ones are looked through, and how many such looks before the
older ones are. An error that was caught may keep a call's values until then."""


@click.command()
@sdk.standard_options
@click.option(
    "--metrics-address",
    # Click takes an empty variable for an unset one; here it switches metrics off.
    default=lambda: os.environ.get("METRICS_ADDRESS"),
    show_default=METRICS_ADDRESS,
    help="Address that serves /metrics, /healthz and /readyz over plain HTTP; empty: none. "
    "Also METRICS_ADDRESS.",
)
@click.version_option(__version__, prog_name="function")
def cli(  # noqa: PLR0913 - a command's flags
    *,
    debug: bool,
    address: str,
    tls_certs_dir: str | None,
    insecure: bool,
    max_recv_message_size: int,
    max_send_message_size: int | None,
    metrics_address: str | None,
) -> None:
    """Serve the provisioning broker's composition function."""
    memory_dumps.forbid()
    logging.configure(level=logging.Level.DEBUG if debug else logging.Level.INFO)
    sent = max_recv_message_size if max_send_message_size is None else max_send_message_size
    listening = server.Listening(
        address=address,
        credentials=None if insecure else _credentials(tls_certs_dir),
        receive_mib=max_recv_message_size,
        send_mib=sent,
    )
    _claim(address)
    observed = observed_at(metrics_address)
    try:
        # A third of a short call is the event loop's own (docs/decisions/0010).
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(listening, observed, debug=debug))
    except (RuntimeError, OSError, ValueError) as error:
        message = f"cannot serve: cannot listen on {address}"
        raise click.ClickException(message) from error


async def _serve(listening: server.Listening, observed: Endpoint | None, *, debug: bool) -> None:
    _collect_seldom()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics()
    with _probes(observed, metrics) as probes:
        calls = CallInterceptor(metrics, debug=debug) if observed is not None or debug else None
        await server.serve(FunctionRunner(), listening, calls, probes, stop)


def _collect_seldom() -> None:
    """Leave what is loaded to itself, and look for garbage once in some calls.

    A call makes thousands of values, nearly all of which go by themselves: by default they
    are looked through several times a call, which took a tenth of its time.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)


def observed_at(asked: str | None) -> Endpoint | None:
    """Return where metrics are; None: nowhere.

    An address that somebody asked for must be had. The default is a convenience: a second
    function on one host serves without it, and says so.
    """
    if asked is not None:
        return _claim(asked) if asked else None
    try:
        return _claim(METRICS_ADDRESS)
    except click.ClickException as error:
        detail = error.message.removeprefix("cannot serve: ")
        click.echo(f"Warning: metrics are not served: {detail}", err=True)
        return None


@contextlib.contextmanager
def _probes(endpoint: Endpoint | None, metrics: Metrics) -> Iterator[Probes | None]:
    if endpoint is None:
        yield None
        return
    with contextlib.closing(Probes(endpoint, metrics, asyncio.get_running_loop())) as probes:
        yield probes


def _credentials(folder: str | None) -> grpc.ServerCredentials:
    if not folder:
        message = "cannot serve: set --tls-certs-dir, or --insecure outside a cluster"
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


def _claim(address: str) -> Endpoint:
    """Return where an address is, or say in one line why it cannot be had.

    gRPC's own error is several lines.

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
                return Endpoint(family=family, host=endpoint[0], port=endpoint[1])
        except OSError as error:
            detail = str(error.strerror)
    message = f"cannot serve: cannot listen on {address}: {detail}"
    raise click.ClickException(message)
