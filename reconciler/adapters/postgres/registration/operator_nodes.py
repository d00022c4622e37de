"""Nodes that nobody else takes out any more, and what an id stands for, on Postgres.

An operator's deregistration with its audit, and the look-up of an id. Source:
docs/operators.md; docs/decisions/0024.
"""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.registration import token_issuer
from reconciler.domain.aggregate import ids
from reconciler.domain.storable_text import storable
from reconciler.ports.operators import NamedID, NodeDeregistration

_LOCK: LiteralString = """
SELECT resource.id, resource.project_id, node.bootstrap_token_id AS token,
       resource.status = 'Deleted' OR resource.force_released_at IS NOT NULL AS given_up
FROM plexsphere.provisioned_resources AS resource
JOIN plexsphere.nodes AS node ON node.provisioned_resource_id = resource.id
WHERE node.id = $1 AND ($2::uuid IS NULL OR node.project_id = $2)
FOR NO KEY UPDATE OF resource
"""
"""The resource first, as in a registration: two orders would deadlock."""

_IS_LIVE: LiteralString = """
SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE id = $1
"""
"""After the lock and on its own, so that it sees what whoever held the lock has done."""

_TAKE_OUT: LiteralString = "SELECT plexsphere.take_out_node($1, $2)"

_AUDIT: LiteralString = """
INSERT INTO plexsphere.operator_audit
    (actor, action, project_id, provisioned_resource_id, bootstrap_token_id, node_id, reason)
VALUES ($1, 'deregister-node', $2, $3, $4, $5, $6)
"""

_NAMED: LiteralString = """
SELECT known.kind, $2::uuid AS id, resource.project_id, project.name AS project,
       resource.id AS provisioned_resource_id, resource.namespace, resource.record_name AS record,
       resource.xr_group, resource.xr_kind, resource.owner_name AS xr_name, resource.resource,
       resource.accepted -> 'blueprint' ->> 'name' AS blueprint,
       resource.accepted ->> 'cloudCredential' AS cloud_credential,
       cluster.slug AS management_cluster, resource.status AS phase,
       node.id AS node_id, host(node.mesh_ip) AS mesh_ip
FROM (
    SELECT 1 AS rank, 'ProvisionedResource' AS kind, id AS owner
    FROM plexsphere.provisioned_resources WHERE project_id = $1 AND id = $2
    UNION ALL
    SELECT 2, 'Resource', id
    FROM plexsphere.provisioned_resources WHERE project_id = $1 AND resource_id = $2
    UNION ALL
    SELECT 3, 'Node', provisioned_resource_id
    FROM plexsphere.nodes WHERE project_id = $1 AND id = $2
    UNION ALL
    SELECT 4, 'BootstrapToken', provisioned_resource_id
    FROM plexsphere.bootstrap_tokens WHERE project_id = $1 AND id = $2
) AS known
JOIN plexsphere.provisioned_resources AS resource ON resource.id = known.owner
JOIN plexsphere.projects AS project ON project.id = resource.project_id
JOIN plexsphere.management_clusters AS cluster ON cluster.id = resource.management_cluster_id
LEFT JOIN plexsphere.nodes AS node
    ON node.provisioned_resource_id = resource.id AND node.deregistered_at IS NULL
ORDER BY known.rank, resource.created_at DESC
LIMIT 1
"""
"""An id of one aggregate."""

_SHARED: LiteralString = """
SELECT known.kind, $2::uuid AS id, project.id AS project_id, project.name AS project, known.name
FROM plexsphere.projects AS project
CROSS JOIN LATERAL (
    SELECT 'Project' AS kind, project.name AS name WHERE project.id = $2
    UNION ALL
    SELECT 'Domain', domain.name
    FROM plexsphere.domains AS domain WHERE domain.id = $2 AND domain.id = project.domain_id
    UNION ALL
    SELECT 'BlueprintVersion', coalesce(accepted -> 'blueprint' ->> 'name', '')
    FROM plexsphere.provisioned_resources WHERE project_id = $1 AND blueprint_version_id = $2
    UNION ALL
    SELECT 'CloudCredential', coalesce(accepted ->> 'cloudCredential', '')
    FROM plexsphere.provisioned_resources WHERE project_id = $1 AND cloud_credential_id = $2
    UNION ALL
    SELECT 'ManagementCluster', cluster.slug
    FROM plexsphere.management_clusters AS cluster
    WHERE cluster.id = $2 AND cluster.id IN (
        SELECT management_cluster_id
        FROM plexsphere.project_cluster_assignments WHERE project_id = $1
        UNION ALL
        SELECT management_cluster_id FROM plexsphere.provisioned_resources WHERE project_id = $1)
) AS known
WHERE project.id = $1
LIMIT 1
"""
"""An id that many aggregates share, as far as this Project uses it: who may read one Project's
does not learn by guessing what another one has."""

ACTOR_MAX = 1024
"""Characters of a user's name that are kept; a name of the API server's is shorter."""


async def deregister(
    connection: asyncpg.Connection,
    node: ids.NodeID,
    *,
    project: ids.ProjectID | None,
    by: str,
    reason: str,
) -> NodeDeregistration:
    """Take a node out whose resource is Deleted or was given up, and audit who did and why.

    Args:
        connection: In no transaction.
        node: Which.
        project: Whose; None where whoever asks may ask of all.
        by: Who asks.
        reason: Why, one printable line.

    Idempotency: one that is out is told so, and nothing is written.
    """
    async with connection.transaction():
        found = await connection.fetchrow(_LOCK, node, project)
        if found is None:
            return NodeDeregistration.ABSENT
        if not await connection.fetchval(_IS_LIVE, node):
            return NodeDeregistration.GONE
        if not found["given_up"]:
            return NodeDeregistration.ALIVE
        await connection.execute(token_issuer.REVOKE, found["id"])
        await connection.execute(_TAKE_OUT, found["id"], uuid7())
        await connection.execute(
            _AUDIT,
            storable(by)[:ACTOR_MAX],
            found["project_id"],
            found["id"],
            found["token"],
            node,
            storable(reason),
        )
    return NodeDeregistration.OUT


async def named(pool: asyncpg.Pool, project: ids.ProjectID, wanted: UUID) -> NamedID | None:
    """Return what an id of a Project stands for; None where it stands for nothing there."""
    with translated("resolve id"):
        row = await pool.fetchrow(_NAMED, project, wanted)
        row = row or await pool.fetchrow(_SHARED, project, wanted)
    return None if row is None else NamedID(**row)
