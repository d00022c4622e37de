"""The console script over a real socket: starting, serving, refusing, stopping."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1beta1 import run_function_pb2 as fnv1beta1
from crossplane.function.proto.v1beta1 import run_function_pb2_grpc as grpcv1beta1

from function.__version__ import __version__
from tests.integration.grpc.conftest import Tls
from tests.integration.grpc.serving import (
    READY_TIMEOUT_S,
    STOP_TIMEOUT_S,
    refused,
    running,
    stub,
)
from tests.unit.function import given

pytestmark = pytest.mark.integration

CALL_TIMEOUT_S = 10


async def test_it_answers_in_the_clear(address: str) -> None:
    with running("--insecure", "--address", address):
        async with stub(address) as client:
            answer = await client.RunFunction(
                given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S
            )

    assert isinstance(answer, fnv1.RunFunctionResponse)
    assert set(answer.desired.resources) == {"record"}


async def test_it_answers_crossplanes_certificate_and_no_other(address: str, tls: Tls) -> None:
    with running("--tls-certs-dir", str(tls.server), "--address", address):
        async with stub(address, tls.client) as client:
            answer = await client.RunFunction(
                given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S
            )
        async with stub(address, tls.stranger) as stranger:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stranger.RunFunction(given.request(), timeout=CALL_TIMEOUT_S)
        async with stub(address) as clear:
            with pytest.raises(grpc.aio.AioRpcError):
                await clear.RunFunction(given.request(), timeout=CALL_TIMEOUT_S)

    assert set(answer.desired.resources) == {"record"}
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_it_answers_the_older_protocol_too(address: str) -> None:
    request = fnv1beta1.RunFunctionRequest.FromString(given.request().SerializeToString())

    with running("--insecure", "--address", address):
        async with grpc.aio.insecure_channel(address) as channel:
            client = grpcv1beta1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call]
            answer = await client.RunFunction(request, wait_for_ready=True, timeout=READY_TIMEOUT_S)

    assert set(answer.desired.resources) == {"record"}


async def test_a_request_above_the_limit_is_refused(address: str) -> None:
    large = given.request(context={"padding": "x" * (5 * 1024 * 1024)})

    with running("--insecure", "--address", address):
        async with stub(address) as client:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.RunFunction(large, wait_for_ready=True, timeout=READY_TIMEOUT_S)

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_with_status_zero_and_says_nothing(
    address: str, number: signal.Signals
) -> None:
    with running("--insecure", "--address", address) as process:
        async with stub(address) as client:
            await client.RunFunction(given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S)
        process.send_signal(number)
        _, errors = process.communicate(timeout=STOP_TIMEOUT_S)

    assert process.returncode == 0
    assert errors == ""


def test_without_credentials_it_does_not_start(address: str) -> None:
    status, lines = refused("--address", address)

    assert status == 1
    assert lines == ["Error: cannot serve: set --tls-certs-dir, or --insecure outside a cluster"]


def test_without_its_certificates_it_does_not_start(address: str, tmp_path: Path) -> None:
    status, lines = refused("--address", address, "--tls-certs-dir", str(tmp_path))

    assert status == 1
    (line,) = lines
    assert "must hold tls.crt, tls.key, ca.crt" in line


def test_with_a_broken_certificate_it_does_not_start(
    address: str, tls: Tls, tmp_path: Path
) -> None:
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).write_bytes((tls.server / name).read_bytes())
    (tmp_path / "tls.crt").write_text("no certificate")

    status, lines = refused("--address", address, "--tls-certs-dir", str(tmp_path))

    assert status == 1
    assert len(lines) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - the SDK's default
def test_on_a_taken_port_it_does_not_start(host: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        status, lines = refused("--insecure", "--address", f"{host}:{taken.getsockname()[1]}")

    assert status == 1
    (line,) = lines
    assert line.endswith("Address already in use")


@pytest.mark.parametrize("address", ["no such place", "127.0.0.1:99999", "127.0.0.1"])
def test_on_an_impossible_address_it_does_not_start(address: str) -> None:
    status, lines = refused("--insecure", "--address", address)

    assert status == 1
    (line,) = lines
    assert line.startswith(f"Error: cannot serve: cannot listen on {address}: ")


async def test_two_of_them_do_not_share_a_port(address: str) -> None:
    with running("--insecure", "--address", address) as first:
        async with stub(address) as client:
            await client.RunFunction(given.request(), wait_for_ready=True, timeout=READY_TIMEOUT_S)

        status, lines = await asyncio.to_thread(refused, "--insecure", "--address", address)

        assert first.poll() is None
    assert status == 1
    assert len(lines) == 1


def test_it_tells_its_version() -> None:
    with running("--version") as process:
        told, _ = process.communicate(timeout=READY_TIMEOUT_S)

    assert told == f"function, version {__version__}\n"
