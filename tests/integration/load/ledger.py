"""What the rows must say once every machine was told that it is a node.

One list of the resources whose rows say anything else, and a server of the test's own that
may go away.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, LiteralString

import asyncpg
import pytest

from dev.postgres import Postgres

_ODD: Final[LiteralString] = """
SELECT resource.xr_name, live.*
FROM plexsphere.provisioned_resources AS resource, LATERAL (
    SELECT
        (SELECT count(*) FROM plexsphere.nodes
         WHERE provisioned_resource_id = resource.id) AS nodes,
        (SELECT count(*) FROM plexsphere.nodes
         WHERE provisioned_resource_id = resource.id AND deregistered_at IS NULL) AS live_nodes,
        (SELECT count(*) FROM plexsphere.bootstrap_tokens
         WHERE provisioned_resource_id = resource.id AND consumed_at IS NOT NULL) AS consumed,
        (SELECT count(*) FROM plexsphere.bootstrap_tokens
         WHERE provisioned_resource_id = resource.id
           AND consumed_at IS NULL AND revoked_at IS NULL) AS live_tokens,
        (SELECT count(*) FROM plexsphere.registration_nonces AS nonce
         JOIN plexsphere.bootstrap_tokens AS token ON token.id = nonce.bootstrap_token_id
         WHERE token.provisioned_resource_id = resource.id) AS nonces,
        (SELECT count(*) FROM plexsphere.outbox_events AS event
         WHERE event.event_type = 'identity.NodeRegistered'
           AND event.payload ->> 'ProvisionedResourceID' = resource.id::text) AS told
) AS live
WHERE (nodes, live_nodes, consumed, live_tokens, nonces, told) <> (1, 1, 1, 0, 1, 1)
"""

_SHARED_ADDRESSES: Final[LiteralString] = """
SELECT count(*) FROM plexsphere.nodes AS node
WHERE EXISTS (SELECT FROM plexsphere.mesh_free AS free
              WHERE free.domain_id = node.domain_id AND free.address = node.mesh_ip)
   OR EXISTS (SELECT FROM plexsphere.nodes AS other
              WHERE other.domain_id = node.domain_id AND other.mesh_ip = node.mesh_ip
                AND other.id <> node.id)
"""

_TOLD: Final[LiteralString] = """
SELECT event_type, count(*) AS times, count(DISTINCT aggregate_id) AS resources
FROM plexsphere.outbox_events GROUP BY event_type ORDER BY event_type
"""

EVENTS: Final = (
    "broker.ProvisionedResourceReady",
    "broker.ProvisionedResourceRequested",
    "identity.NodeRegistered",
)
"""What a resource and its node tell until the node is there."""


async def assert_one_node_each(dsn: str, *, resources: int) -> None:
    """Assert that each resource has one node, one spent token, no live one and one event.

    And that no address is held twice, or held and free.
    """
    connection = await asyncpg.connect(dsn)
    try:
        odd = [dict(row) for row in await connection.fetch(_ODD)]
        stored = await connection.fetchval("SELECT count(*) FROM plexsphere.provisioned_resources")
        shared = await connection.fetchval(_SHARED_ADDRESSES)
    finally:
        await connection.close()
    assert odd == []
    assert stored == resources
    assert shared == 0


@contextmanager
def own_server(folder: Path) -> Iterator[Postgres]:
    """Yield a server that nobody else uses, so that it may go away; else the test is skipped."""
    with Postgres(folder) as postgres:
        if not postgres.is_ours:
            pytest.skip("the server of PLEXSPHERE_DSN is not ours to end")
        yield postgres


@asynccontextmanager
async def outage(postgres: Postgres, how: signal.Signals) -> AsyncIterator[None]:
    """Take a server away for the block, off the event loop."""
    block = postgres.down(how)
    await asyncio.to_thread(block.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(block.__exit__, None, None, None)


async def assert_events_once(dsn: str, *, resources: int) -> None:
    """Assert that each aggregate told each of its steps once, from its request to Ready."""
    connection = await asyncpg.connect(dsn)
    try:
        told = await connection.fetch(_TOLD)
    finally:
        await connection.close()
    assert [dict(row) for row in told if row["times"] != row["resources"]] == []
    found = {row["event_type"]: row["resources"] for row in told if row["event_type"] in EVENTS}
    assert found == dict.fromkeys(EVENTS, resources)


async def execute(dsn: str, statement: LiteralString, *arguments: str) -> object:
    """Run a statement on a connection of its own and return its first value."""
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(statement, *arguments)
    finally:
        await connection.close()
