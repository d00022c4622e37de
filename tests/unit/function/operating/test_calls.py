"""What is counted and told of a call, and what never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, MutableMapping
from typing import Any

import grpc
import pytest
import structlog
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from prometheus_client import generate_latest

from dev.process import wait_until
from function.fn import FunctionRunner
from function.operating.calls import CallInterceptor
from function.operating.metrics import Metrics
from tests.unit.function import given

SERVICE = "apiextensions.fn.proto.v1.FunctionRunnerService"
CALL = {"grpc_type": "unary", "grpc_service": SERVICE, "grpc_method": "RunFunction"}
TIMEOUT_S = 10


class Scripted(grpcv1.FunctionRunnerServiceServicer):
    """Answers as ours, or fails as a test says."""

    def __init__(self, error: Exception | None = None, code: grpc.StatusCode | None = None) -> None:
        self._ours = FunctionRunner()
        self._error = error
        self._code = code
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.leave.set()

    async def RunFunction(  # noqa: N802 - gRPC's name
        self, req: fnv1.RunFunctionRequest, context: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        self.entered.set()
        await self.leave.wait()
        if self._code is not None:
            await context.abort(self._code, "no")
        if self._error is not None:
            raise self._error
        return await self._ours.RunFunction(req, context)


class Running:
    """A server with the interceptor, and a client."""

    def __init__(self, servicer: Scripted, *, debug: bool = False) -> None:
        self.metrics = Metrics()
        self.servicer = servicer
        self._server = grpc.aio.server(interceptors=[CallInterceptor(self.metrics, debug=debug)])
        grpcv1.add_FunctionRunnerServiceServicer_to_server(servicer, self._server)  # type: ignore[no-untyped-call]
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    async def __aenter__(self) -> Running:
        await self._server.start()
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{self._port}")
        self.client = grpcv1.FunctionRunnerServiceStub(self._channel)  # type: ignore[no-untyped-call]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()
        await self._server.stop(0)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    async def eventually(self, name: str, wanted: float, **labels: str) -> None:
        await asyncio.to_thread(
            wait_until, lambda: self.value(name, **labels) == wanted, timeout_s=TIMEOUT_S
        )


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with Running(Scripted()) as made:
        yield made


@pytest.fixture
def told() -> Iterator[list[MutableMapping[str, Any]]]:
    with structlog.testing.capture_logs() as entries:
        yield entries


async def test_calls_are_counted_as_go_functions_count_them(running: Running) -> None:
    for _ in range(2):
        await running.client.RunFunction(given.request(), timeout=TIMEOUT_S)

    assert running.value("grpc_server_started_total", **CALL) == 2
    assert running.value("grpc_server_handled_total", **CALL, grpc_code="OK") == 2
    assert running.value("grpc_server_handling_seconds_count", **CALL) == 2
    assert running.value("function_run_function_requests_in_flight") == 0


async def test_outcomes_are_counted_by_input_and_reason(running: Running) -> None:
    await running.client.RunFunction(given.request(), timeout=TIMEOUT_S)
    await running.client.RunFunction(given.request(input={"kind": "Dance"}), timeout=TIMEOUT_S)
    name = "function_run_function_outcome_total"

    waiting = {"input_kind": "Declare", "outcome": "Waiting", "result_severity": "Normal"}
    fatal = {"input_kind": "other", "outcome": "Fatal", "result_severity": "Fatal"}
    assert running.value(name, **waiting, reason="WaitingForReconciler") == 1
    assert running.value(name, **fatal, reason="") == 1


async def test_the_size_of_an_answer_is_measured_on_the_wire(running: Running) -> None:
    answer = await running.client.RunFunction(given.request(), timeout=TIMEOUT_S)

    assert running.value("function_run_function_response_bytes_sum") == answer.ByteSize()


async def test_a_call_in_flight_shows(running: Running) -> None:
    running.servicer.leave.clear()
    call = asyncio.ensure_future(running.client.RunFunction(given.request(), timeout=TIMEOUT_S))
    await asyncio.wait_for(running.servicer.entered.wait(), TIMEOUT_S)

    during = running.value("function_run_function_requests_in_flight")
    running.servicer.leave.set()
    await call

    assert during == 1
    assert running.value("function_run_function_requests_in_flight") == 0


@pytest.mark.parametrize(
    ("servicer", "code"),
    [
        (Scripted(error=ValueError("a value")), "Unknown"),
        (Scripted(code=grpc.StatusCode.RESOURCE_EXHAUSTED), "ResourceExhausted"),
    ],
)
async def test_a_call_that_fails_is_counted_with_its_code(servicer: Scripted, code: str) -> None:
    async with Running(servicer) as running:
        with pytest.raises(grpc.aio.AioRpcError):
            await running.client.RunFunction(given.request(), timeout=TIMEOUT_S)

        # The client hears of it before it is counted.
        await running.eventually("grpc_server_handled_total", 1, **CALL, grpc_code=code)
        assert running.value("function_run_function_requests_in_flight") == 0


async def test_a_call_that_its_client_gave_up_is_counted_as_canceled(running: Running) -> None:
    running.servicer.leave.clear()
    call = running.client.RunFunction(given.request(), timeout=TIMEOUT_S)
    await asyncio.wait_for(running.servicer.entered.wait(), TIMEOUT_S)

    call.cancel()

    await running.eventually("grpc_server_handled_total", 1, **CALL, grpc_code="Canceled")
    assert running.value("function_run_function_requests_in_flight") == 0


async def test_an_unknown_method_adds_no_series(running: Running) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{running._port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(f"/{SERVICE}/Dance")(b"", timeout=TIMEOUT_S)

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert b"Dance" not in generate_latest(running.metrics.registry)


async def test_each_call_has_one_line_that_says_whose_it_was(
    told: list[MutableMapping[str, Any]],
) -> None:
    async with Running(Scripted(), debug=True) as running:
        await running.client.RunFunction(given.request(), timeout=TIMEOUT_S)

    (line,) = told
    assert line.pop("duration_ms") > 0
    assert line == {
        "event": "run_function",
        "log_level": "debug",
        "tag": "0123456789ab",
        "input_kind": "Declare",
        "xr_api_version": "provisioning.plexsphere.com/v1alpha1",
        "xr_kind": "ProvisionedResource",
        "xr_name": "web-1",
        "outcome": "Waiting",
        "reason": "WaitingForReconciler",
    }


async def test_without_debug_nothing_is_told(
    running: Running, told: list[MutableMapping[str, Any]]
) -> None:
    await running.client.RunFunction(given.request(), timeout=TIMEOUT_S)

    assert told == []


@pytest.mark.parametrize("place", ["tag", "name", "kind", "input", "reason", "parameter"])
async def test_no_token_reaches_a_metric_or_the_log(
    place: str, told: list[MutableMapping[str, Any]]
) -> None:
    canary = f"{given.TOKEN}\n{{}}"
    async with Running(Scripted(), debug=True) as running:
        answer = await running.client.RunFunction(_hostile(place, canary), timeout=TIMEOUT_S)
        shown = generate_latest(running.metrics.registry).decode()

    assert isinstance(answer, fnv1.RunFunctionResponse)
    assert given.TOKEN not in shown
    assert given.TOKEN not in repr(told)


def _hostile(place: str, canary: str) -> fnv1.RunFunctionRequest:
    declared = given.xr(parameters={"region": canary if place == "parameter" else "nbg1"})
    if place == "name":
        declared["metadata"]["name"] = canary
    if place == "kind":
        declared["kind"] = canary
    status = given.status(phase="Failed", terminal=canary if place == "reason" else "")
    failed = given.condition("Ready", "False", canary if place == "reason" else "Because")
    request = given.request(
        declared,
        resources={"record": given.record(status), "substrate": given.substrate(failed)},
        found=given.required(token=given.secret(), substrate=None),
    )
    if place == "tag":
        request.meta.tag = canary
    if place == "input":
        request.input["kind"] = canary
    return request
