"""The gRPC server's life: start, serve until told to stop, drain.

What the SDK's own `serve` does, which takes neither interceptors nor a say in how it stops.
Source: reference, crossplane §6.2 and §6.5.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Protocol

import grpc
from crossplane.function import runtime
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from crossplane.function.proto.v1beta1 import run_function_pb2_grpc as grpcv1beta1
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

GRACE_S: Final = 5.0
"""How long calls in flight may take after a stop; the slowest takes a fraction of a second."""

CALLS_MAX: Final = 1_000
"""Calls at once before more are refused: ten times the reconciles that core runs at a time."""

_MEBIBYTE: Final = 1024 * 1024


class Readiness(Protocol):
    """Receives the readiness of the server: serving, or about to stop."""

    def serving(self, *, serving: bool) -> None:
        """Take note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The options of the listener.

    Attributes:
        address: Host and port.
        credentials: None: in the clear.
        receive_mib: Largest request, in MiB.
        send_mib: Largest response, in MiB.
        grace_s: How long a drain may take, in seconds.
    """

    address: str
    credentials: grpc.ServerCredentials | None
    receive_mib: int
    send_mib: int
    grace_s: float = GRACE_S


async def serve(
    servicer: grpcv1.FunctionRunnerServiceServicer,
    listening: Listening,
    interceptor: grpc.aio.ServerInterceptor | None,
    readiness: Readiness | None,
    stop: asyncio.Event,
) -> None:
    """Answer calls until `stop` is set, then drain.

    Readiness fails first, then no call is accepted, then those in flight end or, after
    the grace, are cancelled.

    Args:
        servicer: Who answers.
        listening: Where, and how.
        interceptor: Who sees each call; None: nobody.
        readiness: Who is told; None: nobody.
        stop: Set from outside.

    Raises:
        RuntimeError: The address cannot be had.
    """
    server = grpc.aio.server(
        interceptors=[] if interceptor is None else [interceptor],
        options=_options(listening),
        maximum_concurrent_rpcs=CALLS_MAX,
    )
    status = _add_services(server, servicer)
    if listening.credentials is None:
        server.add_insecure_port(listening.address)
    else:
        server.add_secure_port(listening.address, listening.credentials)
    await server.start()
    if readiness is not None:
        readiness.serving(serving=True)
    try:
        await stop.wait()
    finally:
        if readiness is not None:
            readiness.serving(serving=False)
        await status.enter_graceful_shutdown()
        await server.stop(listening.grace_s)


def _add_services(
    server: grpc.aio.Server, servicer: grpcv1.FunctionRunnerServiceServicer
) -> health.aio.HealthServicer:
    grpcv1.add_FunctionRunnerServiceServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    grpcv1beta1.add_FunctionRunnerServiceServicer_to_server(  # type: ignore[no-untyped-call]
        runtime.BetaFunctionRunner(wrapped=servicer), server
    )
    status = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    names = (
        *runtime.SERVICE_NAMES,
        health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
    )
    reflection.enable_server_reflection(names, server)
    return status


def _options(listening: Listening) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", listening.receive_mib * _MEBIBYTE),
        ("grpc.max_send_message_length", listening.send_mib * _MEBIBYTE),
        # Two processes on one port would share its traffic without a word.
        ("grpc.so_reuseport", 0),
    ]
