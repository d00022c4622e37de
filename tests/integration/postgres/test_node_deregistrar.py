"""A node that its store does not let go."""

from __future__ import annotations

import asyncpg
import pytest

from reconciler.adapters.postgres.node_deregistrar import PostgresNodeDeregistrar
from reconciler.ports.broker import MeshRefusedError
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


async def test_a_lookup_that_is_refused_is_told_as_one(world: World, dsn: str) -> None:
    token = await world.token(await world.resource())
    connection = await asyncpg.connect(dsn)
    await connection.execute("ALTER TABLE plexsphere.nodes RENAME TO elsewhere")
    await connection.close()

    with pytest.raises(MeshRefusedError, match="cannot find node"):
        await world.deregistrar.node_registered(token.id)

    assert isinstance(world.deregistrar, PostgresNodeDeregistrar)
