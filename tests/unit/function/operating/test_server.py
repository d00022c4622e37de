"""How the server starts, what it serves, and how it drains."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dev.process import free_port, wait_until
from function.operating import server

TIMEOUT_S = 20
ANSWER = fnv1.RunFunctionResponse(meta=fnv1.ResponseMeta(tag="done"))


class Slow(grpcv1.FunctionRunnerServiceServicer):
    """Answers when it is told to, and knows what it took and whether it was cancelled."""

    def __init__(self) -> None:
        self.taken = 0
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.cancelled = False

    async def RunFunction(  # noqa: N802 - gRPC's name
        self, req: fnv1.RunFunctionRequest, _: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        self.taken += 1
        self.entered.set()
        try:
            await self.leave.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return ANSWER


class Readiness:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[bool] = []
        self.changed = asyncio.Event()

    def serving(self, *, serving: bool) -> None:
        self.told.append(serving)
        self.changed.set()


class Served:
    """A server in this loop, a client, and what it was told."""

    def __init__(self, *, grace_s: float = server.GRACE_S) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.servicer = Slow()
        self.readiness = Readiness()
        self.stop = asyncio.Event()
        listening = server.Listening(
            address=self.address, credentials=None, receive_mib=4, send_mib=4, grace_s=grace_s
        )
        self.task = asyncio.ensure_future(
            server.serve(self.servicer, listening, None, self.readiness, self.stop)
        )

    @contextlib.asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        async with asyncio.timeout(TIMEOUT_S):
            await self.readiness.changed.wait()
            async with grpc.aio.insecure_channel(self.address) as channel:
                yield channel
            self.stop.set()
            await self.task

    async def calling(self, channel: grpc.aio.Channel) -> asyncio.Future[fnv1.RunFunctionResponse]:
        """A call that the servicer has begun."""
        client = grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call]
        call: asyncio.Future[fnv1.RunFunctionResponse] = asyncio.ensure_future(
            client.RunFunction(fnv1.RunFunctionRequest())
        )
        await self.servicer.entered.wait()
        return call


async def test_a_drain_fails_readiness_first_and_lets_calls_end() -> None:
    served = Served()
    async with served.channel() as channel:
        call = await served.calling(channel)
        served.readiness.changed.clear()
        served.stop.set()
        await served.readiness.changed.wait()
        during = (list(served.readiness.told), call.done(), served.task.done())
        served.servicer.leave.set()

        answer = await call

    assert during == ([True, False], False, False)
    assert answer == ANSWER
    assert served.readiness.told == [True, False]


async def test_a_draining_server_takes_no_new_call() -> None:
    served = Served()
    async with served.channel() as channel:
        call = await served.calling(channel)
        served.stop.set()
        await asyncio.to_thread(wait_until, lambda: not listens(served.port), timeout_s=TIMEOUT_S)

        async with grpc.aio.insecure_channel(served.address) as late:
            client = grpcv1.FunctionRunnerServiceStub(late)  # type: ignore[no-untyped-call]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.RunFunction(fnv1.RunFunctionRequest())
        begun = not call.done()
        served.servicer.leave.set()

        assert await call == ANSWER
    assert begun
    assert served.servicer.taken == 1
    # A connection that the client still has is told to go away, and drops what it carries.
    assert caught.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_a_drain_ends_after_its_grace() -> None:
    served = Served(grace_s=0.2)
    async with served.channel() as channel:
        call = await served.calling(channel)
        begun = time.monotonic()
        served.stop.set()
        with pytest.raises(grpc.aio.AioRpcError):
            await call
        await served.task

    assert 0.2 <= time.monotonic() - begun < TIMEOUT_S
    assert served.servicer.cancelled


async def test_it_answers_grpcs_own_health_check() -> None:
    served = Served()
    async with served.channel() as channel:
        health = health_pb2_grpc.HealthStub(channel)

        answer = await health.Check(health_pb2.HealthCheckRequest())

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_an_address_that_is_taken_is_an_error() -> None:
    readiness = Readiness()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listening = server.Listening(
            address=f"127.0.0.1:{taken.getsockname()[1]}",
            credentials=None,
            receive_mib=4,
            send_mib=4,
        )

        with pytest.raises(RuntimeError):
            await server.serve(Slow(), listening, None, readiness, asyncio.Event())

    assert readiness.told == []
