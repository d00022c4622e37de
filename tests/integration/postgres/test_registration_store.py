"""What a registration promises on Postgres alone: addresses, waits, failures and time."""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import timedelta
from typing import Final

import asyncpg
import pytest

from function.contract.strategy import BootstrapState
from reconciler.adapters.postgres import enrolment_audit
from reconciler.adapters.postgres.mesh_addresses import BATCH
from reconciler.domain.identity.denial import Denial
from reconciler.ports.identity import DeniedRegistration, Registered
from tests.contract.worlds import World, unknown_token
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

ASKED: Final = 200
"""Requests of each kind whose median counts."""
DIFFERENCE_MAX: Final = 0.5
"""Of the slower median: a test on a shared machine sees no less, and a missing statement or
transaction is more than that."""

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
