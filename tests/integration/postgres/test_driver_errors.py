"""What becomes of a driver's errors, on a real server."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from reconciler.adapters.postgres.aggregates.broker_repository import PostgresBrokerRepository
from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.registration.enrolment_store import PostgresEnrolmentStore
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.domain.identity.denial import Denial
from reconciler.ports.registration import Registered, StoreUnavailableError
from tests.contract.worlds import World, aggregate
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration


async def test_a_lost_server_is_unavailable(pool: asyncpg.Pool) -> None:
    repository = PostgresBrokerRepository(FencedStore(pool), samples.CLUSTER)
    async with pool.acquire() as connection:
        own = await connection.fetchval("SELECT pg_backend_pid()")
        with (
            pytest.raises(StoreUnavailableError, match="cannot test: the store"),
            translated("test"),
        ):
            await connection.execute("SELECT pg_terminate_backend($1)", own)

    assert await repository.sightings(samples.CLUSTER) == []


async def test_a_connection_that_was_told_farewell_is_unavailable(pool: asyncpg.Pool) -> None:
    fields = b"SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
    farewell = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
    async with pool.acquire() as connection:
        # As a server's shutdown does; the end of the connection is read a moment later.
        connection._protocol.data_received(farewell)

        with pytest.raises(StoreUnavailableError), translated("test"):
            await connection.execute("SELECT 1")
        connection.terminate()

    assert await pool.fetchval("SELECT 1") == 1


async def test_a_closed_pool_is_unavailable(pool: asyncpg.Pool) -> None:
    repository = PostgresBrokerRepository(FencedStore(pool), samples.CLUSTER)
    await pool.close()

    with pytest.raises(StoreUnavailableError):
        await repository.sightings(samples.CLUSTER)


_CLUSTER = "INSERT INTO plexsphere.management_clusters (id, name, slug) VALUES "
_ID = "00000000-0000-0000-0000-000000000001"
_POOL = "INSERT INTO plexsphere.mesh_pools (domain_id, mesh_range) VALUES"
BROKEN = {
    "check": (
        f"{_CLUSTER} ('{_ID}', 'secret-name', '')",
        "management_clusters.slug: must satisfy management_clusters_slug_check",
    ),
    "reference": (
        f"{_POOL} ('{_ID}', '100.64.0.0/29')",
        "mesh_pools.domain_id: must name a stored row (mesh_pools_domain_id_fkey)",
    ),
    "null": (
        f"{_CLUSTER} ('{_ID}', NULL, 'secret-name')",
        "management_clusters.name: must not be null",
    ),
    "nul": (
        f"{_CLUSTER} ('{_ID}', jsonb '{{\"a\": \"secret-name\\u0000\"}}' ->> 'a', 'x')",
        "a value cannot be stored in Postgres (UntranslatableCharacter)",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
async def test_a_refused_row_is_told_by_its_field_and_rule_and_no_value(
    pool: asyncpg.Pool, rule: str
) -> None:
    statement, told = BROKEN[rule]

    with pytest.raises(InvalidInputError) as caught, translated("store thing"):
        await pool.execute(statement)

    assert str(caught.value) == f"cannot store thing: {told}"


async def test_what_is_not_understood_passes_with_a_note(pool: asyncpg.Pool) -> None:
    with pytest.raises(asyncpg.UndefinedTableError) as caught, translated("read nothing"):
        await pool.fetch("SELECT FROM nowhere")

    assert caught.value.__notes__ == ["attempted: read nothing"]


async def test_a_row_that_drifted_is_refused_when_it_is_read(
    pool: asyncpg.Pool, world: World
) -> None:
    resource = await world.resource()
    await pool.execute("UPDATE plexsphere.provisioned_resources SET xr_name = 'pr-other'")

    with pytest.raises(InvalidInputError, match="xr_name must be derived from the id"):
        await world.repository.get(resource.id)


async def test_who_waits_too_long_is_told_to_come_again(pool: asyncpg.Pool, world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    store = PostgresEnrolmentStore(pool, lock_wait=timedelta(milliseconds=50))
    impatient = replace(world, enrolment_store=store)

    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM plexsphere.provisioned_resources FOR NO KEY UPDATE")
        refused = await impatient.register(resource, token)
    registered = await world.register(resource, token)

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (503, "allocator_contention")
    assert isinstance(registered, Registered)


async def test_an_address_that_is_taken_at_the_last_moment_is_not_given_twice(
    pool: asyncpg.Pool, world: World
) -> None:
    one, two = await world.resource("a"), await world.resource("b")
    assert isinstance(await world.register(one, await world.token(one)), Registered)
    token = await world.token(two)

    with pytest.raises(asyncpg.UniqueViolationError, match="nodes_mesh_ip_live"):
        await pool.execute(
            "INSERT INTO plexsphere.nodes (id, project_id, domain_id, provisioned_resource_id, "
            "bootstrap_token_id, public_key, mesh_ip, nsk_hash) "
            "SELECT $1, project_id, domain_id, $2, $3, public_key, mesh_ip, nsk_hash "
            "FROM plexsphere.nodes",
            aggregate().id,
            two.id,
            token.id,
        )
