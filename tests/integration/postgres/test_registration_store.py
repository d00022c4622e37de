"""What a registration promises on Postgres alone: addresses, waits, failures and time."""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg
import pytest
from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.adapters.postgres.registration import enrolment_audit
from reconciler.adapters.postgres.registration.mesh_addresses import BATCH
from reconciler.adapters.postgres.registration.registration_transaction import PostgresRegistration
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import registration_body
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.registration_body import RegistrationRequest
from reconciler.ports.registration import DeniedRegistration, NewNode, Registered
from tests.contract.worlds import World, body, unknown_token
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

ASKED: Final = 200
"""Requests of each kind whose median counts."""
DIFFERENCE_MAX: Final = 0.5
"""Of the slower median: a test on a shared machine sees no less, and a missing statement or
transaction is more than that."""

CROWD: Final = """
SET session_replication_role = replica;
INSERT INTO plexsphere.nodes
    (id, project_id, domain_id, provisioned_resource_id, bootstrap_token_id, public_key, mesh_ip,
     nsk_hash)
SELECT gen_random_uuid(), gen_random_uuid(), domain_id, gen_random_uuid(), gen_random_uuid(),
       sha256(n::text::bytea), '10.200.0.0'::inet + n, nsk_hash
FROM plexsphere.nodes, generate_series(1, 2000) AS n;
RESET session_replication_role;
"""
"""Live nodes of other Projects of the same Domain."""
NODES_READ: Final = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'nodes'
"""
BREAK_EVENTS: Final = """
CREATE FUNCTION plexsphere.break() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'broken'; END $$;
CREATE TRIGGER break BEFORE INSERT ON plexsphere.outbox_events
FOR EACH ROW WHEN (NEW.event_type = 'identity.NodeRegistered') EXECUTE FUNCTION plexsphere.break();
"""


async def test_a_registration_whose_event_fails_leaves_nothing(
    world: World, pool: asyncpg.Pool
) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await pool.execute(BREAK_EVENTS)

    with pytest.raises(asyncpg.RaiseError, match="broken"):
        await world.register(resource, token)

    assert await world.issuer.state(token.id) is BootstrapState.ISSUED
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.nodes") == 0
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.registration_nonces") == 0
    await pool.execute("DROP TRIGGER break ON plexsphere.outbox_events")
    registered = await world.register(resource, token)
    assert isinstance(registered, Registered)
    assert registered.mesh.mesh_ip == "100.64.0.1"


async def test_addresses_that_others_hold_are_contention_and_not_exhaustion(
    world: World, pool: asyncpg.Pool
) -> None:
    first = await world.resource("a")
    await world.register(first, await world.token(first))
    resource = await world.resource("b")
    token = await world.token(resource)

    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM plexsphere.mesh_free FOR UPDATE")
        refused = await world.register(resource, token)
    registered = await world.register(resource, token)

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (503, "allocator_contention")
    assert isinstance(registered, Registered)
    (entry,) = await world.backdoor.denials()
    assert entry.code == "allocator_contention"


async def test_a_project_with_a_range_of_its_own_stays_in_it(
    world: World, pool: asyncpg.Pool
) -> None:
    await pool.execute(
        "UPDATE plexsphere.projects SET mesh_subrange = '100.64.0.0/30' WHERE id = $1",
        samples.PROJECT,
    )
    ours = [await world.resource(f"ours-{item}") for item in range(3)]
    answers = [await world.register(item, await world.token(item)) for item in ours]
    neighbour = await world.neighbour("theirs")

    theirs = await world.register(neighbour, await world.token(neighbour))

    one, two, refused = answers
    assert isinstance(one, Registered)
    assert isinstance(two, Registered)
    assert {one.mesh.mesh_ip, two.mesh.mesh_ip} == {"100.64.0.1", "100.64.0.2"}
    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (503, "subrange_exhausted")
    assert isinstance(theirs, Registered)
    assert theirs.mesh.mesh_ip == "100.64.0.4"


async def test_a_range_is_laid_out_in_batches_and_by_one(world: World, pool: asyncpg.Pool) -> None:
    await pool.execute("UPDATE plexsphere.domains SET mesh_cidr = '10.0.0.0/8'")
    resources = [await world.resource(f"r{item}") for item in range(12)]
    tokens = [await world.token(item) for item in resources]

    answers = await asyncio.gather(
        *(world.register(item, token) for item, token in zip(resources, tokens, strict=True))
    )

    assert all(isinstance(item, Registered) for item in answers)
    assert await pool.fetchval("SELECT next_offset FROM plexsphere.mesh_pools") == 1 + BATCH


async def test_a_deregistration_that_waits_sees_who_came(world: World) -> None:
    resource = await world.resource()
    tokens = [await world.token(resource, item) for item in (1, 2)]

    for _ in range(3):
        await asyncio.gather(
            world.register(resource, tokens[0]),
            world.deregistrar.deregister(tokens[0].id),
            world.register(resource, tokens[1]),
        )
    await world.deregistrar.deregister(tokens[0].id)

    assert not await world.deregistrar.node_registered(tokens[0].id)


async def test_an_unknown_token_takes_as_long_as_a_wrong_one(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.issuer.revoke(resource.id)
    took_s: dict[str, list[float]] = {"unknown": [], "wrong": []}

    for _ in range(ASKED):
        for kind, changes in (("unknown", {"bootstrap_token": unknown_token()}), ("wrong", {})):
            begun = time.perf_counter()
            refused = await world.register(resource, token, **changes)
            took_s[kind].append(time.perf_counter() - begun)
            assert isinstance(refused, Denial)

    unknown, wrong = (statistics.median(took_s[kind]) for kind in ("unknown", "wrong"))
    assert abs(unknown - wrong) < DIFFERENCE_MAX * max(unknown, wrong)


async def test_old_denials_are_forgotten_now_and_then(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrolment_audit, "DENIALS_MAX", 5)
    monkeypatch.setattr(enrolment_audit, "PRUNE_EVERY", 10)
    denial = DeniedRegistration(code="token_unknown", status=403, remote_address="192.0.2.1")

    for _ in range(20):
        await enrolment_audit.append(pool, denial)

    kept = await pool.fetch("SELECT sequence FROM plexsphere.enrolment_audit ORDER BY sequence")
    assert [row["sequence"] for row in kept] == list(range(16, 21))


async def test_an_expired_token_is_judged_when_its_lock_is_had(
    world: World, pool: asyncpg.Pool
) -> None:
    resource = await world.resource()
    token = await world.token(resource)

    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM plexsphere.provisioned_resources FOR UPDATE")
        waiting = asyncio.create_task(world.register(resource, token))
        await _waits_for_a_lock(pool)
        await world.backdoor.age(token.id, timedelta(hours=2))
    refused = await waiting

    assert isinstance(refused, Denial)
    assert refused.code == "token_expired"


async def _waits_for_a_lock(pool: asyncpg.Pool) -> None:
    for _ in range(200):
        if await pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            return
        await asyncio.sleep(0.01)
    pytest.fail("nobody waits for a lock")


async def test_an_address_that_an_older_process_took_is_passed_over(
    world: World, pool: asyncpg.Pool
) -> None:
    first, second = await world.resource("a"), await world.resource("b")
    await world.register(first, await world.token(first))
    await pool.execute(
        "UPDATE plexsphere.nodes SET mesh_ip ="
        " (SELECT address FROM plexsphere.mesh_free ORDER BY address LIMIT 1)"
    )
    taken = await pool.fetchval("SELECT host(mesh_ip) FROM plexsphere.nodes")

    registered = await world.register(second, await world.token(second))

    assert isinstance(registered, Registered)
    assert registered.mesh.mesh_ip != taken
    assert (
        await pool.fetchval(
            "SELECT count(*) FROM plexsphere.mesh_free WHERE host(address) = $1", taken
        )
        == 0
    )


async def test_an_address_that_has_rested_is_given_away_before_more_are_laid_out(
    world: World, pool: asyncpg.Pool
) -> None:
    resources = [await world.resource(name) for name in "abc"]
    tokens = [await world.token(each) for each in resources]
    await world.register(resources[0], tokens[0])
    await world.deregistrar.deregister(tokens[0].id)
    resting = await pool.fetchval(
        "SELECT rests_until - now() FROM plexsphere.mesh_free WHERE rests_until > now()"
    )

    early = await world.register(resources[1], tokens[1])
    await pool.execute("UPDATE plexsphere.mesh_free SET rests_until = now() - interval '1 s'")
    late = await world.register(resources[2], tokens[2])

    assert timedelta(minutes=9) < resting <= timedelta(minutes=10)
    assert isinstance(early, Registered)
    assert isinstance(late, Registered)
    assert (early.mesh.mesh_ip, late.mesh.mesh_ip) == ("100.64.0.2", "100.64.0.1")


async def test_an_address_rests_while_the_range_goes_on(world: World, pool: asyncpg.Pool) -> None:
    await pool.execute("UPDATE plexsphere.domains SET mesh_cidr = '10.0.0.0/8'")
    old, new = await world.resource("a"), await world.resource("b")
    spent, token = await world.token(old), await world.token(new)
    await world.register(old, spent)
    await world.deregistrar.deregister(spent.id)
    request = registration_body.read(body(new, token))
    assert isinstance(request, RegistrationRequest)

    async with world.enrolment_store.registration() as unit:
        facts = await unit.facts(request)
        assert facts.token is not None
        # What lay ready when it was judged is taken by others until it is written.
        await pool.execute("DELETE FROM plexsphere.mesh_free WHERE rests_until < now()")
        node_id = ids.NodeID(UUID(int=uuid7().int))
        node = NewNode(id=node_id, token=facts.token, nsk_digest=bytes(32))
        with pytest.raises(asyncpg.SerializationError, match="still rests"):
            await unit.admit(request, node)
    registered = await world.register(new, token)

    assert isinstance(registered, Registered)
    assert registered.mesh.mesh_ip == f"10.0.{(BATCH + 1) // 256}.{(BATCH + 1) % 256}"


@pytest.mark.parametrize(
    "table", ["bootstrap_tokens", "provisioned_resources", "projects", "domains"]
)
async def test_nothing_that_a_node_stands_on_can_be_deleted(
    world: World, pool: asyncpg.Pool, table: str
) -> None:
    resource = await world.resource()
    await world.register(resource, await world.token(resource))

    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await pool.execute(f"DELETE FROM plexsphere.{table}")  # noqa: S608 - our own tables


async def test_what_a_registration_reads_does_not_grow_with_the_mesh(
    world: World, pool: asyncpg.Pool
) -> None:
    await pool.execute("UPDATE plexsphere.domains SET mesh_cidr = '10.0.0.0/8'")
    resources = [await world.resource(f"r{item}") for item in range(2)]
    tokens = [await world.token(each) for each in resources]
    await world.register(resources[0], tokens[0])
    await pool.execute(CROWD)
    request = registration_body.read(body(resources[1], tokens[1]))
    assert isinstance(request, RegistrationRequest)

    async with pool.acquire() as connection, connection.transaction():
        unit = PostgresRegistration(connection, lock_wait_ms=1000)
        facts = await unit.facts(request)
        assert facts.token is not None
        node_id = ids.NodeID(UUID(int=uuid7().int))
        node = NewNode(id=node_id, token=facts.token, nsk_digest=bytes(32))
        mesh = await unit.admit(request, node)
        read = await connection.fetchval(NODES_READ)

    assert len(mesh.peers.read()) == 1
    assert read < 20
