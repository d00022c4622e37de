"""A node or a token that its store does not let go."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from function.contract.strategy import BootstrapState
from reconciler.adapters.postgres.registration.node_deregistrar import PostgresNodeDeregistrar
from reconciler.ports.store.aggregates import MeshRefusedError
from tests.contract.worlds import World

pytestmark = pytest.mark.integration

REFUSE = """
CREATE FUNCTION plexsphere.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'kept'; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON plexsphere.nodes EXECUTE FUNCTION plexsphere.keep();
"""


async def test_a_refusal_is_told_as_one_and_changes_nothing(world: World, dsn: str) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)
    connection = await asyncpg.connect(dsn)
    await connection.execute(REFUSE)
    await connection.close()

    with pytest.raises(MeshRefusedError, match="cannot deregister node") as refused:
        await world.deregistrar.deregister(token.id)

    assert "kept" not in str(refused.value)
    assert await world.deregistrar.node_registered(token.id)


WAITING = """
SELECT count(*) > 0 FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def test_a_report_in_flight_is_waited_for_and_keeps_its_node(world: World, dsn: str) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)
    connection, watcher = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    report = connection.transaction()
    await report.start()
    await connection.execute("UPDATE plexsphere.nodes SET reported_at = now()")

    reclaiming = asyncio.create_task(world.deregistrar.reclaim(token.id))
    async with asyncio.timeout(10):
        while not await watcher.fetchval(WAITING):
            await watcher.execute("SELECT pg_sleep(0.01)")
    await report.commit()
    await reclaiming

    assert await world.deregistrar.node_registered(token.id)
    await connection.close()
    await watcher.close()


CHECKS = {
    "node": "ALTER TABLE plexsphere.nodes ADD CHECK (deregistered_at IS NULL)",
    "token": "ALTER TABLE plexsphere.bootstrap_tokens ADD CHECK (revoked_at IS NULL)",
}
FOREIGN_KEYS = {
    "node": (
        "ALTER TABLE plexsphere.nodes ADD FOREIGN KEY (deregistered_at) "
        "REFERENCES plexsphere.moments DEFERRABLE INITIALLY DEFERRED"
    ),
    "token": (
        "ALTER TABLE plexsphere.bootstrap_tokens ADD FOREIGN KEY (revoked_at) "
        "REFERENCES plexsphere.moments DEFERRABLE INITIALLY DEFERRED"
    ),
}


FIELDS = {"node": "nodes.deregistered_at", "token": "bootstrap_tokens.revoked_at"}


@pytest.mark.parametrize("rules", [CHECKS, FOREIGN_KEYS], ids=["check", "foreign-key"])
@pytest.mark.parametrize("what", ["node", "token"])
async def test_a_row_that_breaks_a_rule_of_the_store_is_told_as_a_refusal(
    world: World, dsn: str, rules: dict[str, str], what: str
) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    if what == "node":
        await world.register(resource, token)
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE plexsphere.moments (at timestamptz PRIMARY KEY)")
    await connection.execute(rules[what])
    await connection.close()

    asked = {
        "node": lambda: world.deregistrar.deregister(token.id),
        "token": lambda: world.issuer.revoke(resource.id),
    }
    with pytest.raises(MeshRefusedError, match=r"cannot (deregister node|revoke tokens)") as told:
        await asked[what]()

    assert told.value.rule.startswith(f"{FIELDS[what]}: must ")

    assert await world.issuer.state(token.id) is not BootstrapState.REVOKED


async def test_a_state_that_is_refused_is_told_as_one(world: World, dsn: str) -> None:
    token = await world.token(await world.resource())
    connection = await asyncpg.connect(dsn)
    await connection.execute("ALTER TABLE plexsphere.bootstrap_tokens RENAME TO elsewhere")
    await connection.close()

    with pytest.raises(MeshRefusedError, match="cannot read token state"):
        await world.issuer.state(token.id)


async def test_a_lookup_that_is_refused_is_told_as_one(world: World, dsn: str) -> None:
    token = await world.token(await world.resource())
    connection = await asyncpg.connect(dsn)
    await connection.execute("ALTER TABLE plexsphere.nodes RENAME TO elsewhere")
    await connection.close()

    with pytest.raises(MeshRefusedError, match="cannot find node"):
        await world.deregistrar.node_registered(token.id)

    assert isinstance(world.deregistrar, PostgresNodeDeregistrar)
