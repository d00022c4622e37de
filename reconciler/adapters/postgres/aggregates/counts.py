"""Counting aggregates on Postgres.

The SQL of `ports.store.census`. Source: docs/decisions/0017.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

import asyncpg

from reconciler.adapters.postgres.connection.classify import passing, translated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ResourceKey
from reconciler.ports.store.census import PAGE, CredentialUse, RecordEntry

_COUNT: LiteralString = """
SELECT count(*) FROM plexsphere.provisioned_resources
WHERE namespace = $1 AND status <> 'Deleted' AND management_cluster_id = $2
"""

_USES: LiteralString = """
SELECT DISTINCT accepted ->> 'cloudCredential' AS credential,
       accepted ->> 'blueprint' IS NULL AS enrolled
FROM plexsphere.provisioned_resources
WHERE namespace = $1 AND status <> 'Deleted' AND management_cluster_id = $2
  AND accepted ->> 'cloudCredential' IS NOT NULL
ORDER BY credential, enrolled
"""

_SIGHTING: LiteralString = """
SELECT seen.id, seen.created_at, seen.namespace, seen.record_name AS record,
       seen.accepted ->> 'cloudCredential' AS credential,
       seen.deletion_requested_at IS NOT NULL AS asked, seen.version,
       seen.accepted ->> 'meshRole' = 'node' AS expects_node, node.id AS node
FROM plexsphere.provisioned_resources AS seen
LEFT JOIN plexsphere.nodes AS node
    ON node.provisioned_resource_id = seen.id AND node.deregistered_at IS NULL
WHERE seen.status <> 'Deleted' AND seen.management_cluster_id = $1
"""

_PAGE: LiteralString = (
    _SIGHTING
    + """
  AND (seen.created_at, seen.id) > ($2, $3)
ORDER BY seen.created_at, seen.id
LIMIT $4
"""
)

_OF_RECORD: LiteralString = (
    _SIGHTING
    + """
  AND seen.namespace = $2 AND seen.record_name = $3
ORDER BY seen.created_at, seen.id
"""
)

_UNSETTLED: LiteralString = """
SELECT created_at, id FROM plexsphere.provisioned_resources
WHERE status = 'Deleted' AND protected @> '[{"sibling": true, "released": false}]'
  AND management_cluster_id = $1 AND ($2 = '' OR namespace = $2)
  AND ($3 = '' OR record_name = $3) AND (created_at, id) > ($5, $6)
ORDER BY created_at, id
LIMIT $4
"""

_EMPTIED: LiteralString = """
SELECT DISTINCT gone.namespace FROM plexsphere.provisioned_resources AS gone
WHERE gone.status = 'Deleted' AND gone.management_cluster_id = $1
  AND NOT EXISTS (
    SELECT 1 FROM plexsphere.provisioned_resources AS other
    WHERE other.namespace = gone.namespace AND other.status <> 'Deleted'
      AND other.management_cluster_id = $1
  )
ORDER BY gone.namespace
"""

_ELSEWHERE_BY_KEY: LiteralString = """
SELECT home.slug FROM plexsphere.provisioned_resources AS resource
JOIN plexsphere.management_clusters AS home ON home.id = resource.management_cluster_id
WHERE project_id = $1 AND namespace = $2 AND xr_group = $3 AND xr_kind = $4
  AND owner_name = $5 AND resource = $6 AND deletion_requested_at IS NULL
  AND management_cluster_id <> $7
"""

_ELSEWHERE_BY_RECORD: LiteralString = """
SELECT home.slug FROM plexsphere.provisioned_resources AS resource
JOIN plexsphere.management_clusters AS home ON home.id = resource.management_cluster_id
WHERE resource.record_uid = ANY($1::text[]) AND resource.status <> 'Deleted'
  AND resource.management_cluster_id <> $2
ORDER BY home.slug
LIMIT 1
"""

_THAWED: LiteralString = """
SELECT EXISTS (
    SELECT 1 FROM plexsphere.driver_thaws
    WHERE management_cluster_id = $1 AND thawed_at > now() - $2::interval
)
"""

_THAW: LiteralString = """
INSERT INTO plexsphere.driver_thaws (management_cluster_id, reason)
SELECT id, $2 FROM plexsphere.management_clusters WHERE id = $1
RETURNING true
"""

_Place = tuple[datetime, UUID]
_BEFORE_ALL: Final[_Place] = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class PostgresCensus:
    """Implements `ports.store.census.Census`.

    Args:
        store: Its rows, which several clusters may share.
        cluster: Whose namespaces are meant.
    """

    def __init__(self, store: FencedStore, cluster: ids.ManagementClusterID) -> None:
        self._store = store
        self._cluster = cluster
        self._unsettled_after: dict[ids.ManagementClusterID, _Place] = {}

    async def count_in_namespace(self, namespace: str) -> int:
        """Return how many aggregates of a namespace are not Deleted."""
        with translated("count provisioned resources"):
            return int(await self._store.fetchval(_COUNT, namespace, self._cluster))

    async def credential_uses(self, namespace: str) -> Sequence[CredentialUse]:
        """Return each credential in use in a namespace once, and once per kind of use."""
        with translated("list credentials in use"):
            rows = await self._store.fetch(_USES, namespace, self._cluster)
        return [CredentialUse(**row) for row in rows]

    async def sightings(
        self, cluster: ids.ManagementClusterID, *, after: RecordEntry | None = None
    ) -> Sequence[RecordEntry]:
        """Return the next PAGE of a cluster's aggregates that are not Deleted, oldest first."""
        place = _BEFORE_ALL if after is None else (after.created_at, after.id)
        with translated("list provisioned resources"):
            rows = await self._store.fetch(_PAGE, cluster, *place, PAGE)
        return [_sighting(row) for row in rows]

    async def sightings_of(
        self, cluster: ids.ManagementClusterID, *, namespace: str, record: str
    ) -> Sequence[RecordEntry]:
        """Return those whose record has a name, oldest first."""
        with translated("find provisioned resources"):
            rows = await self._store.fetch(_OF_RECORD, cluster, namespace, record)
        return [_sighting(row) for row in rows]

    async def unsettled(
        self, cluster: ids.ManagementClusterID, *, namespace: str = "", record: str = ""
    ) -> Sequence[ids.ProvisionedResourceID]:
        """Return Deleted aggregates with a sibling that is not settled, oldest first.

        Asked for a whole cluster again, it goes on behind the PAGE it returned last, so that
        those that never settle keep none of the others waiting.
        """
        whole = not namespace and not record
        after = self._unsettled_after.pop(cluster, _BEFORE_ALL) if whole else _BEFORE_ALL
        with translated("list provisioned resources"):
            rows = await self._store.fetch(_UNSETTLED, cluster, namespace, record, PAGE, *after)
        if whole and len(rows) == PAGE:
            self._unsettled_after[cluster] = (rows[-1]["created_at"], rows[-1]["id"])
        return [ids.ProvisionedResourceID(UUID(int=row["id"].int)) for row in rows]

    async def emptied(self, cluster: ids.ManagementClusterID) -> Sequence[str]:
        """Return the namespaces in which all aggregates of a cluster are Deleted, in order."""
        with translated("list namespaces"):
            rows = await self._store.fetch(_EMPTIED, cluster)
        return [row["namespace"] for row in rows]

    async def elsewhere_by_record(self, uids: Sequence[str]) -> str | None:
        """Return the other cluster that one of these records is at home on, or None."""
        with translated("find records of another management cluster"):
            slug = await self._store.fetchval(_ELSEWHERE_BY_RECORD, list(uids), self._cluster)
        return None if slug is None else str(slug)

    async def elsewhere_by_key(self, key: ResourceKey) -> str | None:
        """Return the slug of another management cluster that has a key's live one, or None."""
        with translated("find provisioned resource"):
            slug = await self._store.fetchval(_ELSEWHERE_BY_KEY, *self._place(key))
        return None if slug is None else str(slug)

    async def prove_writable(self) -> None:
        """Go through a write that changes nothing."""
        with passing("write"):
            await self._store.prove()

    async def thawed(self, cluster: ids.ManagementClusterID, *, within: timedelta) -> bool:
        """Tell whether an operator declared a cluster's state true within that time."""
        with translated("read thaws"):
            return bool(await self._store.fetchval(_THAWED, cluster, within))

    def _place(self, key: ResourceKey) -> tuple[Any, ...]:
        """Return the parameters that a key is looked for with."""
        return (
            key.project_id,
            key.namespace,
            key.group,
            key.kind,
            key.name,
            key.resource,
            self._cluster,
        )


async def thaw(
    connection: asyncpg.Connection, cluster: ids.ManagementClusterID, reason: str
) -> bool:
    """Store an operator's thaw of a cluster; tell whether the cluster is stored."""
    return bool(await connection.fetchval(_THAW, cluster, reason))


def _sighting(row: asyncpg.Record) -> RecordEntry:
    node = row["node"]
    return RecordEntry(
        id=ids.ProvisionedResourceID(UUID(int=row["id"].int)),
        created_at=row["created_at"],
        namespace=row["namespace"],
        record=row["record"],
        credential=row["credential"],
        asked=row["asked"],
        version=row["version"],
        expects_node=row["expects_node"],
        node=None if node is None else ids.NodeID(UUID(int=node.int)),
    )
