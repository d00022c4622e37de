"""The node listener over the fakes and over a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from reconciler.adapters.http.listener import listening
from reconciler.adapters.http.node.node_app import node_app
from tests.contract.worlds import memory_world, postgres_world
from tests.fakes.budget import unlimited
from tests.integration.http.conftest import LOOPBACK, Answer, Nodes, bearer, wire


@pytest.fixture
async def fakes() -> AsyncIterator[Nodes]:
    """The listener over fakes alone, for what ends before any row."""
    world = await memory_world()
    app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
    async with listening(app, LOOPBACK, tls=None) as url, aiohttp.ClientSession() as session:
        yield Nodes(world=world, url=url, session=session)


@pytest.fixture
async def registered(nodes: Nodes) -> Answer:
    """A node of whatever `nodes` a test has."""
    resource = await nodes.world.resource()
    return await nodes.register(wire(resource, await nodes.world.token(resource)))


@pytest.fixture(params=["memory", "postgres"])
async def both(request: pytest.FixtureRequest) -> AsyncIterator[Nodes]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            world = await memory_world()
        else:
            dsn = request.getfixturevalue("dsn")
            world = await stack.enter_async_context(postgres_world(dsn))
        app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
        url = await stack.enter_async_context(listening(app, LOOPBACK, tls=None))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Nodes(world=world, url=url, session=session)


async def pull(nodes: Nodes, registered: Answer) -> Answer:
    """Ask for a node's state, as the node."""
    path = f"/v1/nodes/{registered.json['node_id']}/state"
    headers = {"Authorization": f"Bearer {bearer(registered)}"}
    return await nodes.ask("GET", path, headers=headers)
