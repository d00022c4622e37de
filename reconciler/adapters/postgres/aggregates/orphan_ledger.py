"""The owners of marked objects, and the standing findings of the orphan sweep.

The SQL of `ports.cluster.orphans.OrphanLedger` and of `broker orphans`. The table keeps
findings that are over, with both times, as long as retention does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import LiteralString

import asyncpg

from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.domain.teardown.orphans import (
    MarkedObject,
    Orphan,
    OrphanFinding,
    Unrecorded,
    namespace,
)
from reconciler.ports.cluster.orphans import FoundObjects, Kind

_KINDS: LiteralString = """
SELECT DISTINCT item->'reference'->>'apiVersion' AS api_version,
                item->'reference'->>'kind' AS kind
FROM plexsphere.provisioned_resources
CROSS JOIN LATERAL jsonb_array_elements(protected) AS item
WHERE management_cluster_id = $1
"""

_UNPROTECTED: LiteralString = """
SELECT marked.ordinal
FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY
     AS marked (namespace, kind, name, ordinal)
WHERE NOT EXISTS (
    SELECT FROM plexsphere.provisioned_resources r
    CROSS JOIN LATERAL jsonb_array_elements(r.protected) AS item
    WHERE r.management_cluster_id = $1 AND r.namespace = marked.namespace
      AND r.status <> 'Deleted'
      AND item->'reference'->>'kind' = marked.kind
      AND item->'reference'->>'name' = marked.name
)
ORDER BY marked.ordinal
"""

_EXPECTED: LiteralString = """
SELECT namespace, record_name, xr_name FROM plexsphere.provisioned_resources
WHERE management_cluster_id = $1 AND status <> 'Deleted' AND deletion_requested_at IS NULL
"""

_LEFT_NODES: LiteralString = """
SELECT n.id, n.mesh_ip, r.xr_name, r.namespace FROM plexsphere.nodes n
JOIN plexsphere.provisioned_resources r ON r.id = n.provisioned_resource_id
WHERE r.management_cluster_id = $1 AND r.status = 'Deleted' AND n.deregistered_at IS NULL
"""

_OPEN: LiteralString = """
SELECT finding, subject, detail, found_at FROM plexsphere.orphans
WHERE management_cluster_id = $1 AND gone_at IS NULL
ORDER BY found_at, finding, subject
"""

_ADD: LiteralString = """
INSERT INTO plexsphere.orphans (management_cluster_id, finding, subject, detail)
VALUES ($1, $2, $3, $4)
ON CONFLICT (management_cluster_id, finding, subject) WHERE gone_at IS NULL DO NOTHING
"""

_CLOSE: LiteralString = """
UPDATE plexsphere.orphans SET gone_at = now()
WHERE management_cluster_id = $1 AND finding = $2 AND subject = $3 AND gone_at IS NULL
"""


class PostgresOrphanLedger:
    """Implements `ports.cluster.orphans.OrphanLedger` for one management cluster."""

    def __init__(self, store: FencedStore, cluster: ids.ManagementClusterID) -> None:
        self._store = store
        self._cluster = cluster

    async def kinds(self) -> Sequence[Kind]:
        """Return every kind that an aggregate ever had as its substrate or its sibling."""
        with translated("list protected kinds"):
            rows = await self._store.fetch(_KINDS, self._cluster)
        return [(row["api_version"], row["kind"]) for row in rows]

    async def unprotected(self, marked: Sequence[MarkedObject]) -> Sequence[MarkedObject]:
        """Return those that no aggregate protects, Deleted ones not counted."""
        if not marked:
            return ()
        columns = (
            [item.namespace for item in marked],
            [item.kind for item in marked],
            [item.name for item in marked],
        )
        with translated("look for protectors"):
            rows = await self._store.fetch(_UNPROTECTED, self._cluster, *columns)
        return [marked[row["ordinal"] - 1] for row in rows]

    async def expected_records(self) -> Sequence[Unrecorded]:
        """Return where the record is of every aggregate whose deletion was not requested."""
        with translated("list expected records"):
            rows = await self._store.fetch(_EXPECTED, self._cluster)
        return [
            Unrecorded(namespace=row["namespace"], record=row["record_name"], handle=row["xr_name"])
            for row in rows
        ]

    async def left_nodes(self) -> Sequence[Orphan]:
        """Return the nodes in the mesh whose resource is Deleted."""
        with translated("list nodes that were left"):
            rows = await self._store.fetch(_LEFT_NODES, self._cluster)
        return [
            Orphan(
                finding=OrphanFinding.NODE_OF_DELETED,
                subject=f"node {row['id']}",
                detail=f"at {row['mesh_ip']}, of {row['xr_name']}, which is Deleted",
                involved=namespace(row["namespace"]),
            )
            for row in rows
        ]

    async def settle(self, found: Collection[Orphan]) -> Sequence[Orphan]:
        """Make what stands agree with what a sweep found; an equal set writes nothing."""
        with translated("settle orphans"):
            rows = await self._store.fetch(_OPEN, self._cluster)
            stand = {(row["finding"], row["subject"]) for row in rows}
            wanted = {(item.finding.value, item.subject): item for item in found}
            fresh = [item for key, item in wanted.items() if key not in stand]
            over = sorted(stand - wanted.keys())
            if fresh or over:
                async with self._store.write() as connection:
                    for finding, subject in over:
                        await connection.execute(_CLOSE, self._cluster, finding, subject)
                    for item in fresh:
                        await connection.execute(
                            _ADD, self._cluster, item.finding.value, item.subject, item.detail
                        )
        return fresh


async def standing(
    connection: asyncpg.Connection, cluster: ids.ManagementClusterID
) -> Sequence[FoundObjects]:
    """Return the findings that stand for a management cluster, oldest first."""
    rows = await connection.fetch(_OPEN, cluster)
    return [
        FoundObjects(
            orphan=Orphan(
                finding=OrphanFinding(row["finding"]), subject=row["subject"], detail=row["detail"]
            ),
            found_at=row["found_at"],
        )
        for row in rows
    ]
