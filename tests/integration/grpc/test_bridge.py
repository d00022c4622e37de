"""The servicer in grpcio-testing's server, through a synchronous bridge.

grpcio-testing calls an `async def` handler, takes the coroutine for the response and
reports OK; so the bridge awaits, and every test here looks at the response's type.
"""

from __future__ import annotations

import asyncio

import grpc
import grpc_testing
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from function.fn import FunctionRunner
from tests.unit.function import given

SERVICE = fnv1.DESCRIPTOR.services_by_name["FunctionRunnerService"]


class Bridge(grpcv1.FunctionRunnerServiceServicer):
    """Runs the asynchronous servicer to its end."""

    def RunFunction(  # noqa: N802 - gRPC's name
        self, request: fnv1.RunFunctionRequest, context: grpc.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        answer = asyncio.run(FunctionRunner().RunFunction(request, context))
        assert isinstance(answer, fnv1.RunFunctionResponse)
        return answer


def invoke(request: fnv1.RunFunctionRequest) -> tuple[object, grpc.StatusCode]:
    server = grpc_testing.server_from_dictionary(
        {SERVICE: Bridge()}, grpc_testing.strict_real_time()
    )
    call = server.invoke_unary_unary(
        SERVICE.methods_by_name["RunFunction"], (), request, timeout=10
    )
    answer, _, code, _ = call.termination()
    return answer, code


def test_the_servicer_answers_a_response_and_ok() -> None:
    answer, code = invoke(given.request())

    assert code is grpc.StatusCode.OK
    assert isinstance(answer, fnv1.RunFunctionResponse)
    assert set(answer.desired.resources) == {"record"}


def test_a_users_error_is_a_result_and_not_a_status() -> None:
    answer, code = invoke(given.request(input={"kind": "Dance"}))

    assert code is grpc.StatusCode.OK
    assert isinstance(answer, fnv1.RunFunctionResponse)
    assert answer.results[0].severity == fnv1.SEVERITY_FATAL
