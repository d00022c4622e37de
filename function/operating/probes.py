"""The HTTP listener for Prometheus and the kubelet: /metrics, /healthz, /readyz.

A small listener in threads of its own, because the gRPC port asks for a client certificate
that neither of its visitors has, and because a stuck event loop must not answer for itself.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent import futures
from dataclasses import dataclass
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from function.operating.metrics import Metrics

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CONNECTIONS_MAX: Final = 16
"""Connections served at once: a scraper or two and the kubelet; more are closed."""

REQUEST_TIMEOUT_S: Final = 5.0
"""How long a visitor may be silent; then its thread is needed more."""

LOOP_TIMEOUT_S: Final = 2.0
"""How long the event loop may take for a turn; a hundred nodes take a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A resolved address to listen on."""

    family: socket.AddressFamily
    host: str
    port: int


class Probes:
    """Answers on its endpoint from construction until `close`.

    Args:
        metrics: What `/metrics` shows.
        loop: The gRPC server's event loop; alive when it takes its turn in time.

    Raises:
        OSError: The endpoint cannot be had.
    """

    def __init__(
        self, endpoint: Endpoint, metrics: Metrics, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self._serving = threading.Event()
        self._routes: dict[str, Callable[[], HTTPStatus]] = {
            "/healthz": self._healthy,
            "/readyz": self._ready,
        }
        self._metrics: WSGIApplication = make_wsgi_app(metrics.registry)
        self._server = _Server(endpoint)
        self._server.set_app(self._answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="probes", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on, chosen by the kernel where 0 was asked for."""
        return self._server.server_port

    def serving(self, *, serving: bool) -> None:
        """Say whether `/readyz` succeeds; it does not before the first call.

        Idempotency: a second call with the same answer changes nothing.
        """
        if serving:
            self._serving.set()
        else:
            self._serving.clear()

    def close(self) -> None:
        """Stop listening.

        Idempotency: a second call finds nothing to stop.
        """
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return self._metrics(environ, start)
        probe = self._routes.get(path)
        status = HTTPStatus.NOT_FOUND if probe is None else probe()
        body = f"{status.phrase}\n".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
        start(f"{status.value} {status.phrase}", headers)
        return [body]

    def _healthy(self) -> HTTPStatus:
        turn: futures.Future[None] = futures.Future()
        try:
            self._loop.call_soon_threadsafe(turn.set_result, None)
            turn.result(LOOP_TIMEOUT_S)
        except (RuntimeError, TimeoutError):
            return HTTPStatus.SERVICE_UNAVAILABLE
        return HTTPStatus.OK

    def _ready(self) -> HTTPStatus:
        return self._healthy() if self._serving.is_set() else HTTPStatus.SERVICE_UNAVAILABLE


class _Quiet(WSGIRequestHandler):
    """Logs nothing: probes come every few seconds, and paths are the visitor's."""

    timeout = REQUEST_TIMEOUT_S

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Drop the line."""


class _Server(ThreadingMixIn, WSGIServer):
    """One thread per connection, at most `CONNECTIONS_MAX`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, endpoint: Endpoint) -> None:
        self.address_family = endpoint.family
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__((endpoint.host, endpoint.port), _Quiet)

    def server_bind(self) -> None:
        """Bind without looking up the host's name, which may wait for a resolver."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "function", self.socket.getsockname()[1]
        self.setup_environ()

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Serve a connection in its thread, or close it when all places are taken."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Serve a connection, then give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: a visitor that went away is no event."""
