"""No write of an earlier term commits once a later one has begun."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

import reconciler.adapters.postgres as adapters
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.connection.lease import PostgresLeases
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.lease import FencedError, Lease
from tests.fakes.databases import migrated_database

pytestmark = pytest.mark.integration

TTL = timedelta(minutes=10)
PATIENCE_S = 60.0
DRIVERS = (
    "broker_repository", "token_issuer", "node_deregistrar", "hold_ledger", "tenancy_repository",
)  # fmt: skip
WRITE = """
INSERT INTO plexsphere.domains
    (id, name, mesh_cidr, signing_key_id, signing_private_key, signing_public_key)
VALUES ($1, $2, '10.0.0.0/8', 'k', $3, $3)
"""
NAMES = "SELECT name FROM plexsphere.domains ORDER BY name"


@pytest.fixture
def dsn() -> Iterator[str]:
    with migrated_database() as found:
        yield found


@pytest.fixture
async def leases(dsn: str) -> AsyncIterator[PostgresLeases]:
    store = PostgresLeases(dsn, answer_within=timedelta(seconds=PATIENCE_S))
    yield store
    store.close()


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    opened = await open_pool(dsn)
    yield opened
    opened.terminate()


async def _insert(connection: asyncpg.Connection, name: str) -> None:
    await connection.execute(WRITE, uuid4(), name, bytes(32))


async def _taken(leases: PostgresLeases, pool: asyncpg.Pool, before: Lease | None = None) -> Lease:
    if before is not None:
        await pool.execute("UPDATE plexsphere.driver_leases SET expires_at = now()")
    key = uuid4() if before is None else before.key
    lease = await leases.acquire(key, holder="test", ttl=TTL)
    assert lease is not None
    return lease


async def test_the_holder_writes(leases: PostgresLeases, pool: asyncpg.Pool) -> None:
    store = FencedStore(pool, await _taken(leases, pool))

    async with store.write() as connection:
        await _insert(connection, "mine")

    assert [row["name"] for row in await store.fetch(NAMES)] == ["mine"]


async def test_a_former_holder_writes_nothing(leases: PostgresLeases, pool: asyncpg.Pool) -> None:
    first = await _taken(leases, pool)
    await _taken(leases, pool, first)
    store = FencedStore(pool, first)

    with pytest.raises(FencedError):
        async with store.write() as connection:
            await _insert(connection, "late")

    assert await store.fetch(NAMES) == []


async def test_a_takeover_waits_for_what_is_under_way_and_lets_nothing_pass_after_it(
    leases: PostgresLeases, pool: asyncpg.Pool
) -> None:
    first = await _taken(leases, pool)
    store = FencedStore(pool, first)
    async with store.write() as connection:
        await _insert(connection, "under way")
        takeover = asyncio.create_task(_taken(leases, pool, first))
        await _waits_for_a_lock(pool)
        assert not takeover.done()
    second = await takeover

    with pytest.raises(FencedError):
        async with store.write() as connection:
            await _insert(connection, "late")
    async with FencedStore(pool, second).write() as connection:
        await _insert(connection, "next")
    assert [row["name"] for row in await store.fetch(NAMES)] == ["next", "under way"]


async def test_a_renewal_waits_for_no_write_and_no_write_for_it(
    leases: PostgresLeases, pool: asyncpg.Pool
) -> None:
    lease = await _taken(leases, pool)
    async with asyncio.timeout(PATIENCE_S):
        async with FencedStore(pool, lease).write() as connection:
            assert await leases.renew(lease, ttl=TTL)
            await _insert(connection, "beside")
        async with pool.acquire() as other, other.transaction():
            await other.execute("UPDATE plexsphere.driver_leases SET expires_at = now() + $1", TTL)
            async with FencedStore(pool, lease).write() as connection:
                await _insert(connection, "beside too")


async def test_a_transaction_that_was_left_open_holds_no_takeover_for_long(
    leases: PostgresLeases, pool: asyncpg.Pool
) -> None:
    first = await _taken(leases, pool)
    connection = await pool.acquire()
    transaction = connection.transaction()
    await transaction.start()
    # As a process leaves it that is stopped in the middle of a write.
    await connection.fetchval(
        "SELECT true FROM plexsphere.driver_leases WHERE key = $1 FOR KEY SHARE", first.key
    )
    await _insert(connection, "left open")

    async with asyncio.timeout(PATIENCE_S):
        second = await _taken(leases, pool, first)

    assert second.fence == 2
    assert await pool.fetch(NAMES) == []


async def test_every_connection_lets_go_of_its_locks_before_a_lease_is_over(
    pool: asyncpg.Pool,
) -> None:
    assert await pool.fetchval("SHOW idle_in_transaction_session_timeout") == "4s"


async def test_a_store_that_is_away_is_unavailable(dsn: str) -> None:
    leases = PostgresLeases(f"{dsn}_absent", answer_within=timedelta(seconds=PATIENCE_S))

    with pytest.raises((StoreUnavailableError, asyncpg.PostgresError)):
        await leases.acquire(uuid4(), holder="test", ttl=TTL)


@pytest.mark.parametrize("module", DRIVERS)
def test_the_drivers_repositories_change_nothing_but_in_fenced_transactions(module: str) -> None:
    """Nothing of the pool reaches them, and what reads takes no statement that writes."""
    (path,) = Path(str(adapters.__file__)).parent.rglob(f"{module}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    written = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign | ast.Assign)
        for name in ([node.target] if isinstance(node, ast.AnnAssign) else node.targets)
        if isinstance(name, ast.Name) and _writes(node)
    }

    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {"_pool", "acquire"} & attributes
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ast.unparse(call.func).startswith("self._store.fetch"):
            assert not {node.id for node in ast.walk(call) if isinstance(node, ast.Name)} & written


def _writes(node: ast.AST) -> bool:
    text = " ".join(
        str(each.value)
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    return bool(
        re.search(r"\b(INSERT|UPDATE|DELETE|take_out_node)\b", text.replace("KEY UPDATE", ""))
    )


async def _waits_for_a_lock(pool: asyncpg.Pool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await pool.fetchval(  # noqa: ASYNC110 - what is waited for is another server's
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
        ):
            await asyncio.sleep(0.01)
