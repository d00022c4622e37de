"""Taking nodes out of the mesh, on Postgres.

The seam of seed 001, from a token to its resource's node. A deregistered node stays as a
tombstone, so that its bearer is answered with the reason; its address is free again.
"""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from uuid_utils.compat import uuid7

from reconciler.adapters.postgres.connection.classify import refused
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.ports.store.aggregates import RegisteredNode

_LOCK: LiteralString = """
SELECT resource.id
FROM plexsphere.provisioned_resources AS resource
JOIN plexsphere.bootstrap_tokens AS token ON token.provisioned_resource_id = resource.id
WHERE token.id = $1
FOR NO KEY UPDATE OF resource
"""

_TAKE_OUT: LiteralString = """
SELECT plexsphere.take_out_node($1, $2)
"""

_LOCK_SILENT: LiteralString = """
SELECT id FROM plexsphere.nodes
WHERE provisioned_resource_id = $1 AND deregistered_at IS NULL
  AND coalesce(reported_at, last_heartbeat_at) IS NULL
FOR UPDATE
"""
"""Waits for a report in flight and judges it: what it holds does not report meanwhile."""

_FIND: LiteralString = """
SELECT node.id, host(node.mesh_ip) AS mesh_ip, node.registered_at,
       now() - node.registered_at AS age,
       coalesce(node.reported_at, node.last_heartbeat_at) IS NOT NULL AS reported
FROM plexsphere.nodes AS node
JOIN plexsphere.bootstrap_tokens AS token
  ON token.provisioned_resource_id = node.provisioned_resource_id
WHERE token.id = $1 AND node.deregistered_at IS NULL
"""


class PostgresNodeDeregistrar:
    """Implements `ports.store.aggregates.NodeDeregistrar`."""

    def __init__(self, store: FencedStore) -> None:
        self._store = store

    async def deregister(self, token: ids.BootstrapTokenID) -> None:
        """Take the node of a token's resource out of the mesh; none is success."""
        with refused("deregister node"):
            async with self._store.write() as connection:
                resource = await connection.fetchval(_LOCK, token)
                if resource is not None:
                    await connection.execute(_TAKE_OUT, resource, uuid7())

    async def reclaim(self, token: ids.BootstrapTokenID) -> bool:
        """Take the node out if it never reported; tell whether it did."""
        with refused("reclaim node"):
            async with self._store.write() as connection:
                resource = await connection.fetchval(_LOCK, token)
                if resource is None or not await connection.fetchval(_LOCK_SILENT, resource):
                    return False
                await connection.execute(_TAKE_OUT, resource, uuid7())
                return True

    async def node_registered(self, token: ids.BootstrapTokenID) -> bool:
        """Tell whether a node of a token's resource is live in the mesh."""
        return await self.find_node(token) is not None

    async def find_node(self, token: ids.BootstrapTokenID) -> RegisteredNode | None:
        """Return the live node of a token's resource, or None."""
        with refused("find node"):
            row = await self._store.fetchrow(_FIND, token)
        if row is None:
            return None
        return RegisteredNode(
            id=ids.NodeID(UUID(int=row["id"].int)),
            mesh_ip=row["mesh_ip"],
            registered_at=row["registered_at"],
            age=row["age"],
            reported=row["reported"],
        )
