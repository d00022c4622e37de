"""Addresses that rest: while there are others, nobody gets one, and nobody waits for one."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address

import asyncpg
import pytest

from reconciler.adapters.postgres.registration.mesh_addresses import BATCH, READY_MIN
from reconciler.ports.registration import Registered
from tests.contract.worlds import World

pytestmark = pytest.mark.integration


async def _address(world: World, name: str) -> str:
    resource = await world.resource(name)
    registered = await world.register(resource, await world.token(resource))
    assert isinstance(registered, Registered), registered
    return registered.mesh.mesh_ip


@pytest.mark.parametrize("ready", [0, 1, READY_MIN - 1])
async def test_a_range_goes_on_though_all_but_a_few_that_lie_there_rest(
    world: World, pool: asyncpg.Pool, ready: int
) -> None:
    await pool.execute("UPDATE plexsphere.domains SET mesh_cidr = '10.0.0.0/8'")
    await _address(world, "first")
    resting = await pool.execute(
        "UPDATE plexsphere.mesh_free SET rests_until = now() + interval '1 h'"
        " WHERE address >= '10.0.0.2'::inet + $1::int", ready,
    )  # fmt: skip
    assert resting == f"UPDATE {BATCH - 1 - ready}"

    given = await _address(world, "second")

    laid = await pool.fetchval("SELECT next_offset FROM plexsphere.mesh_pools")
    assert laid == 1 + 2 * BATCH
    expected = ip_address("10.0.0.2") if ready else ip_address("10.0.0.0") + 1 + BATCH
    assert given == str(expected)


async def test_in_a_full_mesh_the_one_that_rested_longest_is_given_away_first(
    world: World, pool: asyncpg.Pool
) -> None:
    tokens = {}
    for number in range(6):
        resource = await world.resource(f"node-{number}")
        token = await world.token(resource)
        registered = await world.register(resource, token)
        assert isinstance(registered, Registered)
        tokens[registered.mesh.mesh_ip] = token
    for address in ("100.64.0.5", "100.64.0.2", "100.64.0.4"):
        await world.deregistrar.deregister(tokens[address].id)

    given = [await _address(world, name) for name in ("a", "b", "c")]

    assert given == ["100.64.0.5", "100.64.0.2", "100.64.0.4"]
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.mesh_free") == 0


async def test_a_returned_address_rests_for_ten_minutes_from_when_its_node_left(
    world: World, pool: asyncpg.Pool
) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)

    await world.deregistrar.deregister(token.id)

    assert await pool.fetchval(
        "SELECT rests_until - deregistered_at FROM plexsphere.mesh_free, plexsphere.nodes"
        " WHERE address = mesh_ip"
    ) == timedelta(minutes=10)
