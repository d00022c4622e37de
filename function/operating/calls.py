"""Counts and tells every call, as an interceptor of the gRPC server.

When something is counted. A payload may hold a token, so none is kept, counted or logged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from crossplane.function import logging
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from prometheus_client import Counter

from function.operating import outcome
from function.operating.metrics import Metrics

RUN_FUNCTION: Final = "RunFunction"
"""The method of either protocol version; health and reflection are only counted."""

_Handler = Callable[[Any, Any], Awaitable[Any]]

# gRPC knows codes by number; Go's metrics by these names.
_CODES: Final = {
    code.value[0]: "".join(part.capitalize() for part in code.name.split("_"))
    if code is not grpc.StatusCode.OK
    else "OK"
    for code in grpc.StatusCode
}


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Wraps each unary method once; streams pass by uncounted.

    Args:
        metrics: Where calls are counted.
        debug: Whether each call gets a line in the log.
    """

    def __init__(self, metrics: Metrics, *, debug: bool) -> None:
        self._metrics = metrics
        self._debug = debug
        self._log = logging.get_logger()
        self._outcomes: dict[outcome.CallOutcome, Counter] = {}
        self._wrapped: dict[str, grpc.RpcMethodHandler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Return the method's handler, wrapped.

        Idempotency: one wrapper per served method, whatever clients ask for.
        """
        method = handler_call_details.method
        known = self._wrapped.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        service, _, name = method.lstrip("/").partition("/")
        runs = name == RUN_FUNCTION
        self._wrapped[method] = grpc.unary_unary_rpc_method_handler(
            self._counted(handler.unary_unary, service, name),
            request_deserializer=handler.request_deserializer,
            response_serializer=self._measured(handler.response_serializer)
            if runs
            else handler.response_serializer,
        )
        return self._wrapped[method]

    def _counted(self, handle: _Handler, service: str, method: str) -> _Handler:
        call = ("unary", service, method)
        started = self._metrics.started.labels(*call)
        succeeded = self._metrics.handled.labels(*call, "OK")
        seconds = self._metrics.seconds.labels(*call)
        in_flight = self._metrics.in_flight
        told = self._told if method == RUN_FUNCTION else None

        async def counted(request: Any, context: Any) -> Any:
            started.inc()
            in_flight.inc()
            begun = time.perf_counter()
            try:
                response = await handle(request, context)
            except BaseException as error:
                self._metrics.handled.labels(*call, _code(error, context)).inc()
                raise
            else:
                succeeded.inc()
            finally:
                took = time.perf_counter() - begun
                seconds.observe(took)
                in_flight.dec()
            if told is not None:
                told(request, response, took)
            return response

        return counted

    def _told(
        self, req: fnv1.RunFunctionRequest, rsp: fnv1.RunFunctionResponse, took: float
    ) -> None:
        became = outcome.read(req, rsp)
        counter = self._outcomes.get(became)
        if counter is None:
            counter = self._metrics.outcomes.labels(
                became.input_kind, became.result, became.reason, became.severity
            )
            self._outcomes[became] = counter
        counter.inc()
        if not self._debug:
            return
        whose = outcome.identity(req)
        self._log.debug(
            "run_function",
            tag=whose.tag,
            input_kind=became.input_kind,
            xr_api_version=whose.api_version,
            xr_kind=whose.kind,
            xr_name=whose.name,
            outcome=became.result.value,
            reason=became.reason,
            duration_ms=round(took * 1000, 3),
        )

    def _measured(self, serialize: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        size = self._metrics.response_bytes

        def measured(message: Any) -> bytes:
            wire = serialize(message)
            size.observe(len(wire))
            return wire

        return measured


def _code(error: BaseException, context: Any) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "Canceled"
    code = context.code()
    number = code.value[0] if isinstance(code, grpc.StatusCode) else code
    # A handler that raises without setting a code is answered as UNKNOWN.
    return _CODES.get(number or grpc.StatusCode.UNKNOWN.value[0], "Unknown")
