"""The console script as an operator meets it: probes, metrics, a stop, its log."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from dev.process import free_port
from function import main
from tests.integration.grpc.serving import (
    READY_TIMEOUT_S,
    STOP_TIMEOUT_S,
    refused,
    running,
    stub,
)
from tests.unit.function import given

pytestmark = pytest.mark.integration


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body; 0 while nothing answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=READY_TIMEOUT_S)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, HTTPException):
            return 0, ""


async def test_probes_and_metrics_are_there_once_calls_are_answered(address: str) -> None:
    port = free_port()
    with running("--insecure", "--address", address, "--metrics-address", f"127.0.0.1:{port}"):
        async with stub(address) as client:
            await client.RunFunction(given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S)
        answers = {path: get(port, path) for path in ("/healthz", "/readyz", "/metrics")}

    assert [status for status, _ in answers.values()] == [200, 200, 200]
    assert (
        'grpc_server_handled_total{grpc_code="OK",grpc_method="RunFunction",'
        'grpc_service="apiextensions.fn.proto.v1.FunctionRunnerService",grpc_type="unary"} 1.0'
    ) in answers["/metrics"][1]


async def test_an_empty_address_switches_metrics_off(address: str) -> None:
    with running("--insecure", "--address", address, "--metrics-address", "") as process:
        async with stub(address) as client:
            answer = await client.RunFunction(
                given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S
            )
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STOP_TIMEOUT_S)

    assert isinstance(answer, fnv1.RunFunctionResponse)
    assert process.returncode == 0


async def test_a_stop_ends_an_idle_function_at_once_with_status_zero(address: str) -> None:
    port = free_port()
    arguments = ("--insecure", "--address", address, "--metrics-address", f"127.0.0.1:{port}")
    with running(*arguments) as process:
        async with stub(address) as client:
            await client.RunFunction(given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S)
            process.send_signal(signal.SIGTERM)
            _, errors = await asyncio.to_thread(process.communicate, timeout=STOP_TIMEOUT_S)

    assert (process.returncode, errors) == (0, "")
    assert get(port, "/readyz") == (0, "")


def test_on_a_taken_metrics_port_it_does_not_start(address: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wanted = f"127.0.0.1:{taken.getsockname()[1]}"

        status, lines = refused("--insecure", "--address", address, "--metrics-address", wanted)

    assert status == 1
    assert lines == [f"Error: cannot serve: cannot listen on {wanted}: Address already in use"]


def test_where_only_the_default_metrics_port_is_taken_it_serves_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        default = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(main, "METRICS_ADDRESS", default)

        assert main.observed_at(None) is None

    told = f"Warning: metrics are not served: cannot listen on {default}: Address already in use\n"
    assert capsys.readouterr().err == told


async def test_its_log_says_nothing_of_a_payload(address: str) -> None:
    request = given.request(
        resources={"record": given.record(given.status())},
        found=given.required(token=given.secret(), substrate=None),
    )
    with running("--insecure", "--debug", "--address", address) as process:
        async with stub(address) as client:
            answer = await client.RunFunction(request, wait_for_ready=True, timeout=READY_TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        told, errors = process.communicate(timeout=STOP_TIMEOUT_S)

    assert given.TOKEN in str(answer)
    assert "run_function" in told
    assert given.TOKEN not in told + errors


async def test_its_memory_holds_tokens_and_is_never_dumped(address: str) -> None:
    with running("--insecure", "--address", address) as process:
        async with stub(address) as client:
            await client.RunFunction(given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S)
        limits = await asyncio.to_thread(Path(f"/proc/{process.pid}/limits").read_text)

    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE)


async def test_without_debug_a_call_is_no_event(address: str) -> None:
    with running("--insecure", "--address", address) as process:
        async with stub(address) as client:
            await client.RunFunction(given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=STOP_TIMEOUT_S)

    assert told == ""
