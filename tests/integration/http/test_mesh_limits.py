"""What a node is told when the mesh has no place for it."""

from __future__ import annotations

import base64

import asyncpg
import pytest

from tests.integration.http.conftest import Answer, Nodes, wire
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

KEY = base64.b64encode(b"one key in two machines, or more").decode()


async def _arrive(nodes: Nodes, name: str, **changes: object) -> Answer:
    resource = await nodes.world.resource(name)
    return await nodes.register(wire(resource, await nodes.world.token(resource), **changes))


async def test_a_clone_with_the_key_of_a_live_node_stops(nodes: Nodes) -> None:
    await _arrive(nodes, "a", nonce="a", public_key=KEY)

    refused = await _arrive(nodes, "b", nonce="b", public_key=KEY)

    assert refused.status == 409
    assert "code" not in refused.json
    assert "Retry-After" not in refused.headers


async def test_addresses_that_others_hold_are_waited_for(nodes: Nodes, pool: asyncpg.Pool) -> None:
    await _arrive(nodes, "a", nonce="a")

    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM plexsphere.mesh_free FOR UPDATE")
        refused = await _arrive(nodes, "b", nonce="b")

    assert (refused.status, refused.json["code"]) == (503, "allocator_contention")
    assert refused.headers["Retry-After"] == "1"
    assert (await _arrive(nodes, "c", nonce="c")).status == 201


async def test_a_projects_own_range_may_be_full(nodes: Nodes, pool: asyncpg.Pool) -> None:
    await pool.execute(
        "UPDATE plexsphere.projects SET mesh_subrange = '100.64.0.0/30' WHERE id = $1",
        samples.PROJECT,
    )
    answers = [await _arrive(nodes, name, nonce=name) for name in "abc"]

    assert [answer.status for answer in answers] == [201, 201, 503]
    assert answers[2].json["code"] == "subrange_exhausted"
