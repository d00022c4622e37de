"""A client that sends one request after the other.

A closed loop of some clients on one connection, as core holds one to each function.
Requests are sent as bytes and answers are not decoded, so that the client takes little of
the cores it shares.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import grpc

from bench.contenders import METHOD, Contender

CALL_TIMEOUT_S = 30.0
"""A hundred nodes take a tenth of a second; a busy machine some times that."""

_OPTIONS = [("grpc.max_receive_message_length", 8 * 1024 * 1024)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one contender did in one turn.

    Attributes:
        calls_per_s: Throughput.
        cpu_s: Processor time of the contender per call.
        latencies_s: Of every call, in no order.
    """

    calls_per_s: float
    cpu_s: float
    latencies_s: list[float]


def turn(contender: Contender, *, clients: int, seconds: float) -> Turn:
    """Send for some seconds, then let what is on its way end."""
    return asyncio.run(_turn(contender, clients, seconds))


def calls(contender: Contender, *, clients: int, count: int) -> None:
    """Send a number of calls."""
    asyncio.run(_calls(contender, clients, count))


async def _turn(contender: Contender, clients: int, seconds: float) -> Turn:
    latencies: list[float] = []
    async with grpc.aio.insecure_channel(contender.address, options=_OPTIONS) as channel:
        call = channel.unary_unary(METHOD)
        await call(next(contender.requests), timeout=CALL_TIMEOUT_S)
        spent = contender.cpu_s
        begun = time.perf_counter()
        deadline = begun + seconds

        async def client() -> None:
            now = time.perf_counter()
            while now < deadline:
                await call(next(contender.requests), timeout=CALL_TIMEOUT_S)
                before, now = now, time.perf_counter()
                latencies.append(now - before)

        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
        took = time.perf_counter() - begun
        spent = contender.cpu_s - spent
    count = len(latencies)
    return Turn(calls_per_s=count / took, cpu_s=spent / count, latencies_s=latencies)


async def _calls(contender: Contender, clients: int, count: int) -> None:
    left = iter(range(count))
    async with grpc.aio.insecure_channel(contender.address, options=_OPTIONS) as channel:
        call = channel.unary_unary(METHOD)

        async def client() -> None:
            for _ in left:
                await call(next(contender.requests), timeout=CALL_TIMEOUT_S)

        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
