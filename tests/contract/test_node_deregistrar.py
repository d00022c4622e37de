"""What `ports.broker.NodeDeregistrar` promises."""

from __future__ import annotations

import asyncio

import pytest
from uuid_utils.compat import uuid7

from reconciler.domain.broker import ids
from reconciler.ports.identity import Registered
from tests.contract.worlds import World

pytestmark = pytest.mark.contract


async def test_a_registered_node_is_found_by_its_token(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    registered = await world.register(resource, token)
    assert isinstance(registered, Registered)

    node = await world.deregistrar.find_node(token.id)

    assert node is not None
    assert (node.id, node.mesh_ip) == (registered.node_id, "100.64.0.1")
    assert await world.deregistrar.node_registered(token.id)


async def test_it_is_found_by_any_token_of_its_resource(world: World) -> None:
    resource = await world.resource()
    first, second = await world.token(resource, 1), await world.token(resource, 2)

    await world.register(resource, first)

    assert await world.deregistrar.node_registered(second.id)


async def test_an_unused_and_an_unknown_token_have_no_node(world: World) -> None:
    token = await world.token(await world.resource())

    for item in (token.id, ids.BootstrapTokenID(uuid7())):
        assert await world.deregistrar.find_node(item) is None
        assert not await world.deregistrar.node_registered(item)
        await world.deregistrar.deregister(item)


async def test_deregistering_takes_the_node_out_and_may_be_repeated(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)

    await asyncio.gather(*(world.deregistrar.deregister(token.id) for _ in range(5)))

    assert not await world.deregistrar.node_registered(token.id)


async def test_it_leaves_other_resources_alone(world: World) -> None:
    one, two = await world.resource("a"), await world.resource("b")
    token_one, token_two = await world.token(one), await world.token(two)
    await world.register(one, token_one)
    await world.register(two, token_two)

    await world.deregistrar.deregister(token_one.id)

    assert await world.deregistrar.node_registered(token_two.id)


async def test_its_address_is_free_again(world: World) -> None:
    one, two = await world.resource("a"), await world.resource("b")
    token_one = await world.token(one)
    await world.register(one, token_one)
    await world.deregistrar.deregister(token_one.id)

    registered = await world.register(two, await world.token(two))

    assert isinstance(registered, Registered)
    assert registered.mesh.mesh_ip == "100.64.0.1"
    assert registered.mesh.peers == ()
