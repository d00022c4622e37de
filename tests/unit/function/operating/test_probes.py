"""The listener for Prometheus and the kubelet, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException

import pytest

from function.operating import probes
from function.operating.metrics import Metrics
from function.operating.probes import Endpoint, Probes

TIMEOUT_S = 10
LOOPBACK = Endpoint(family=socket.AF_INET, host="127.0.0.1", port=0)


@contextlib.contextmanager
def listening(loop: asyncio.AbstractEventLoop | None = None) -> Iterator[Probes]:
    made = Probes(LOOPBACK, Metrics(), loop or asyncio.get_running_loop())
    with contextlib.closing(made):
        yield made


async def get(listener: Probes, path: str, method: str = "GET") -> tuple[int, str]:
    return await asyncio.to_thread(_get, listener.port, path, method)


def _get(port: int, path: str, method: str) -> tuple[int, str]:
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


async def test_it_is_healthy_before_it_is_ready() -> None:
    with listening() as listener:
        assert await get(listener, "/healthz") == (200, "OK\n")
        assert await get(listener, "/readyz") == (503, "Service Unavailable\n")


async def test_it_is_ready_while_calls_are_answered() -> None:
    with listening() as listener:
        listener.serving(serving=True)
        during = await get(listener, "/readyz")
        listener.serving(serving=False)

        assert during == (200, "OK\n")
        assert (await get(listener, "/readyz"))[0] == 503


async def test_it_shows_metrics_in_prometheus_text() -> None:
    with listening() as listener:
        status, body = await get(listener, "/metrics")

    assert status == 200
    assert "# TYPE function_run_function_requests_in_flight gauge" in body
    assert "process_resident_memory_bytes " in body


@pytest.mark.parametrize("path", ["/", "/metrics/", "/debug", "/%2e%2e/metrics", "/readyz/x"])
async def test_nothing_else_is_there(path: str) -> None:
    with listening() as listener:
        assert (await get(listener, path))[0] == 404


async def test_a_loop_that_takes_no_turn_is_neither_healthy_nor_ready() -> None:
    idle = asyncio.new_event_loop()
    with contextlib.closing(idle), listening(idle) as listener:
        listener.serving(serving=True)

        assert (await get(listener, "/healthz"))[0] == 503
        assert (await get(listener, "/readyz"))[0] == 503
        assert (await get(listener, "/metrics"))[0] == 200


async def test_a_closed_loop_is_not_healthy() -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    with listening(closed) as listener:
        assert (await get(listener, "/healthz"))[0] == 503


async def test_visitors_above_the_limit_are_turned_away_and_the_rest_are_served() -> None:
    with listening() as listener, contextlib.ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", listener.port), TIMEOUT_S))
            for _ in range(probes.CONNECTIONS_MAX)
        ]
        with pytest.raises((HTTPException, OSError)):
            await get(listener, "/healthz")

        idle.pop().close()

        async with asyncio.timeout(TIMEOUT_S):
            while not await _answers(listener):
                pass


async def _answers(listener: Probes) -> bool:
    try:
        return (await get(listener, "/healthz"))[0] == 200
    except (HTTPException, OSError):
        return False


async def test_a_silent_visitor_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes._Quiet, "timeout", 0.1)
    with (
        listening() as listener,
        socket.create_connection(("127.0.0.1", listener.port), TIMEOUT_S) as silent,
    ):
        assert await asyncio.to_thread(silent.recv, 1) == b""


async def test_it_lets_its_port_go() -> None:
    with listening() as listener:
        port = listener.port

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


async def test_a_taken_port_is_an_error() -> None:
    with listening() as listener, pytest.raises(OSError, match="in use"):
        Probes(
            Endpoint(family=socket.AF_INET, host="127.0.0.1", port=listener.port),
            Metrics(),
            asyncio.get_running_loop(),
        )
