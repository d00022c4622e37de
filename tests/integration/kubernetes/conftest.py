"""A stand-in of an API server, a client of it, and a cache over both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest
from kubernetes.aio.client import ApiClient, Configuration

from dev.controlplane import ControlPlane
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.cache.packed import Key
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from tests.contract.cluster_worlds import RealWorld, real_world, shared_control_plane
from tests.integration.kubernetes.stand_in import PATH, StandIn

DEADLINE_S: Final = 10.0
PAUSE_S: Final = 0.005

Until = Callable[[Callable[[], object]], Awaitable[None]]


@pytest.fixture
def server() -> StandIn:
    return StandIn()


@pytest.fixture
async def url(server: StandIn) -> AsyncIterator[str]:
    async with server.listening() as url:
        yield url


@pytest.fixture
async def client(url: str) -> AsyncIterator[KubernetesClient]:
    async with client_of(url) as client:
        yield client


@pytest.fixture
async def followed(client: KubernetesClient) -> AsyncIterator[Followed]:
    async with following(client) as followed:
        yield followed


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    return shared_control_plane(request.config, tmp_path_factory)


@pytest.fixture
async def real(control_plane: ControlPlane) -> AsyncIterator[RealWorld]:
    async with real_world(control_plane) as world:
        yield world


class Followed:
    """A cache, and the keys that its handler heard."""

    def __init__(self, client: KubernetesClient, path: str) -> None:
        self.heard: list[Key] = []
        self.cache = ObjectCache(client, path, on_change=self.heard.append)

    @property
    def names(self) -> list[str]:
        """The names that were heard since they were last forgotten, in order."""
        return [name for _, name in self.heard]

    def versions(self) -> dict[str, str]:
        """Return what the cache holds, by name."""
        items = self.cache.items().items()
        return {name: item["metadata"]["resourceVersion"] for (_, name), item in items}

    async def settled(self, **objects: str) -> None:
        """Wait until the cache holds these versions and nothing else."""
        await until(lambda: self.cache.synced and self.versions() == objects)


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[KubernetesClient]:
    """Yield a client of a server without authentication."""
    client = KubernetesClient(ApiClient(Configuration(host=url)))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def following(client: KubernetesClient, path: str = PATH) -> AsyncIterator[Followed]:
    """Run a cache; that it ended by itself fails the test."""
    followed = Followed(client, path)
    task = asyncio.create_task(followed.cache.run())
    try:
        yield followed
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(fact: Callable[[], object]) -> None:
    """Return once a fact holds.

    Raises:
        AssertionError: it did not hold in time.
    """
    deadline = time.monotonic() + DEADLINE_S
    while not fact():
        assert time.monotonic() < deadline, f"still waiting after {DEADLINE_S:g} s"
        await asyncio.sleep(PAUSE_S)
