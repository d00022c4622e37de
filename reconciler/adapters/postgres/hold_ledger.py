"""What is held for credentials, remembered on Postgres.

Belongs here: the SQL of `shared_holds`. Not here: who needs what is held
(`domain.broker.shared_hold`). Every row belongs to the one cluster that the ledger is for.
Source: docs/decisions/0011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

import asyncpg

from reconciler.adapters.postgres.classify import translated
from reconciler.domain.broker import ids
from reconciler.domain.broker.shared_hold import SharedHold
from reconciler.ports.broker import LOOSE_MAX

_REMEMBER: LiteralString = """
INSERT INTO plexsphere.shared_holds AS known
    (management_cluster_id, namespace, api_version, kind, name, credential)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (management_cluster_id, namespace, api_version, kind, name, credential)
    DO UPDATE SET revision = known.revision + 1
"""

_LIST: LiteralString = """
SELECT namespace, api_version, kind, name, credential, revision
FROM plexsphere.shared_holds
WHERE management_cluster_id = $1 AND namespace = $2
ORDER BY api_version COLLATE "C", kind COLLATE "C", name COLLATE "C", credential COLLATE "C"
"""

_FORGET: LiteralString = """
DELETE FROM plexsphere.shared_holds
WHERE management_cluster_id = $1 AND namespace = $2 AND api_version = $3 AND kind = $4
  AND name = $5 AND credential = $6 AND revision = $7
"""

_LIST_LOOSE: LiteralString = """
SELECT held.namespace, held.credential
FROM plexsphere.shared_holds AS held
WHERE held.management_cluster_id = $1 AND NOT EXISTS (
    SELECT 1 FROM plexsphere.provisioned_resources AS user_of
    WHERE user_of.namespace = held.namespace AND user_of.status <> 'Deleted'
      AND user_of.accepted ->> 'cloudCredential' = held.credential
)
GROUP BY held.namespace, held.credential
ORDER BY min(held.remembered_at), held.namespace, held.credential
LIMIT $2
"""


class PostgresHoldLedger:
    """Implements `ports.broker.HoldLedger` for one management cluster."""

    def __init__(self, pool: asyncpg.Pool, cluster_id: ids.ManagementClusterID) -> None:
        self._pool = pool
        self._cluster_id = cluster_id

    async def remember(self, hold: SharedHold) -> None:
        """Store what is about to be held; once more counts its revision."""
        with translated("remember hold"):
            await self._pool.execute(_REMEMBER, self._cluster_id, *_identity(hold))

    async def list_in_namespace(self, namespace: str) -> Sequence[SharedHold]:
        """Return what is held in a namespace, in a fixed order."""
        with translated("list holds"):
            rows = await self._pool.fetch(_LIST, self._cluster_id, namespace)
        return [SharedHold(**row) for row in rows]

    async def forget(self, hold: SharedHold) -> None:
        """Delete a row unless it was remembered again since it was read."""
        with translated("forget hold"):
            await self._pool.execute(_FORGET, self._cluster_id, *_identity(hold), hold.revision)

    async def list_loose(self) -> Sequence[tuple[str, str]]:
        """Return namespace and credential of what nobody uses any more, oldest first."""
        with translated("list loose holds"):
            rows = await self._pool.fetch(_LIST_LOOSE, self._cluster_id, LOOSE_MAX)
        return [(row["namespace"], row["credential"]) for row in rows]


def _identity(hold: SharedHold) -> tuple[str, str, str, str, str]:
    return hold.namespace, hold.api_version, hold.kind, hold.name, hold.credential
