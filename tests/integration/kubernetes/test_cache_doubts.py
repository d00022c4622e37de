"""What a cache finds suspicious: an API server that goes back in time, a list that shrank."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from reconciler.adapters.kubernetes.cache import object_cache
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.domain.guard.circuit_breaker import BreakerCause
from tests.integration.kubernetes.conftest import until
from tests.integration.kubernetes.stand_in import NAMESPACE, PATH, StandIn

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "BACKOFF_FIRST_S", 0.05)


@asynccontextmanager
async def _doubting(
    client: KubernetesClient,
) -> AsyncIterator[tuple[ObjectCache, list[BreakerCause]]]:
    doubts: list[BreakerCause] = []
    held = ObjectCache(client, PATH, on_change=lambda _key: None, on_doubt=doubts.append)
    task = asyncio.create_task(held.run())
    try:
        await held.wait_synced()
        yield held, doubts
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("bump", [0, 1_000_000_000])
async def test_a_server_that_was_restored_from_a_backup_is_doubted(
    bump: int, server: StandIn, client: KubernetesClient
) -> None:
    server.put("a")
    backup = server.snapshot()
    async with _doubting(client) as (held, doubts):
        for name in "bcd":
            server.put(name)
        await until(lambda: len(held.items()) == 4)

        server.restore(backup, bump=bump)
        await until(lambda: len(held.items()) == 1)

    assert doubts == [BreakerCause.WENT_BACK]


async def test_a_list_that_lacks_many_is_doubted(server: StandIn, client: KubernetesClient) -> None:
    for number in range(40):
        server.put(f"n{number}")
    async with _doubting(client) as (held, doubts):
        _miss(server, [f"n{number}" for number in range(10)])
        await until(lambda: len(held.items()) == 30)

    assert doubts == [BreakerCause.LIST_SHRANK]


async def test_a_list_that_lacks_a_few_is_not(server: StandIn, client: KubernetesClient) -> None:
    for number in range(40):
        server.put(f"n{number}")
    async with _doubting(client) as (held, doubts):
        _miss(server, [f"n{number}" for number in range(3)])
        await until(lambda: len(held.items()) == 37)

    assert doubts == []


async def test_deletions_that_a_watch_tells_are_not_doubted_here(
    server: StandIn, client: KubernetesClient
) -> None:
    for number in range(40):
        server.put(f"n{number}")
    async with _doubting(client) as (held, doubts):
        await until(lambda: server.streams)
        for number in range(40):
            server.delete(f"n{number}")
        await until(lambda: not held.items())

    assert doubts == []


async def test_an_object_whose_generation_goes_back_is_doubted(
    server: StandIn, client: KubernetesClient
) -> None:
    server.put("a")["metadata"]["generation"] = 7
    async with _doubting(client) as (held, doubts):
        await until(lambda: server.streams)

        server.put("a")
        await until(
            lambda: (held.get((NAMESPACE, "a")) or {})["metadata"].get("generation") is None
        )

    assert doubts == [BreakerCause.WENT_BACK]


async def test_it_is_silent_since_it_last_heard_anything(
    server: StandIn, client: KubernetesClient
) -> None:
    async with _doubting(client) as (held, _):
        await until(lambda: server.streams)
        await until(lambda: held.silent_s > 0.05)

        server.bookmark()

        await until(lambda: held.silent_s < 0.05)


def _miss(server: StandIn, deleted: Iterable[str]) -> None:
    """Have the cache miss deletions, and list anew."""
    server.break_watches(410)
    server.cut()
    for name in deleted:
        server.delete(name)
    server.compact()
