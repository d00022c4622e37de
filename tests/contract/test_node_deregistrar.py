"""What `ports.store.aggregates.NodeDeregistrar` promises."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import pytest
from uuid_utils.compat import uuid7

from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.peers import Peers
from reconciler.ports.registration import Registered
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
    assert timedelta() <= node.age < timedelta(minutes=1)
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


async def test_its_address_rests_before_another_node_gets_it(world: World) -> None:
    one, two = await world.resource("a"), await world.resource("b")
    token_one = await world.token(one)
    await world.register(one, token_one)
    await world.deregistrar.deregister(token_one.id)

    registered = await world.register(two, await world.token(two))

    assert isinstance(registered, Registered)
    assert registered.mesh.mesh_ip == "100.64.0.2"
    assert registered.mesh.peers == Peers()


async def test_a_mesh_without_another_gives_the_address_that_rested_longest(world: World) -> None:
    tokens = []
    for item in range(6):
        resource = await world.resource(f"r{item}")
        tokens.append(await world.token(resource))
        assert isinstance(await world.register(resource, tokens[-1]), Registered)
    await world.deregistrar.deregister(tokens[1].id)
    await world.deregistrar.deregister(tokens[4].id)
    later = [await world.resource(name) for name in ("x", "y", "z")]

    one, two, refused = [await world.register(each, await world.token(each)) for each in later]

    assert isinstance(one, Registered)
    assert isinstance(two, Registered)
    assert (one.mesh.mesh_ip, two.mesh.mesh_ip) == ("100.64.0.2", "100.64.0.5")
    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (503, "pool_exhausted")


async def test_a_node_that_never_reported_is_reclaimed_and_may_be_again(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)
    node = await world.deregistrar.find_node(token.id)
    assert node is not None
    assert not node.reported

    took = await asyncio.gather(*(world.deregistrar.reclaim(token.id) for _ in range(3)))

    assert sorted(took) == [False, False, True]
    assert not await world.deregistrar.node_registered(token.id)


async def test_a_node_that_reported_is_not_reclaimed(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    registered = await world.register(resource, token)
    assert isinstance(registered, Registered)
    raw = registered.node_id.bytes + registered.nsk
    bearer = "nsk_plexd_" + base64.urlsafe_b64encode(raw).decode()
    assert await world.enrolment.authenticate(bearer, any_node=True) == registered.node_id

    assert not await world.deregistrar.reclaim(token.id)

    node = await world.deregistrar.find_node(token.id)
    assert node is not None
    assert node.reported


async def test_nobody_is_reclaimed_where_nobody_registered(world: World) -> None:
    token = await world.token(await world.resource())

    assert not await world.deregistrar.reclaim(token.id)
    assert not await world.deregistrar.reclaim(ids.BootstrapTokenID(uuid7()))

    assert not await world.deregistrar.node_registered(token.id)
