"""The ledger of holds for credentials, on Postgres.

The SQL of `shared_holds`. Every row belongs to the one cluster that the ledger is for.
Source: docs/decisions/0011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, LiteralString

from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.domain.protection.shared_hold import SharedHold
from reconciler.ports.store.aggregates import LOOSE_MAX

_KNOWN: LiteralString = """
SELECT true FROM plexsphere.shared_holds
WHERE management_cluster_id = $1 AND namespace = $2 AND api_version = $3 AND kind = $4
  AND name = $5 AND credential = $6 AND NOT loosened
"""

_REMEMBER: LiteralString = """
INSERT INTO plexsphere.shared_holds AS known
    (management_cluster_id, namespace, api_version, kind, name, credential)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (management_cluster_id, namespace, api_version, kind, name, credential)
    DO UPDATE SET revision = known.revision + 1, loosened = false WHERE known.loosened
"""

_LOOSEN: LiteralString = """
UPDATE plexsphere.shared_holds SET revision = revision + 1, loosened = true
WHERE management_cluster_id = $1 AND namespace = $2 AND api_version = $3 AND kind = $4
  AND name = $5 AND credential = $6 AND revision = $7
RETURNING revision
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
  AND name = $5 AND credential = $6 AND revision = $7 AND loosened
"""

_LIST_LOOSE: LiteralString = """
SELECT min(held.remembered_at) AS since, held.namespace, held.credential
FROM plexsphere.shared_holds AS held
WHERE held.management_cluster_id = $1 AND NOT EXISTS (
    SELECT 1 FROM plexsphere.provisioned_resources AS user_of
    WHERE user_of.namespace = held.namespace AND user_of.status <> 'Deleted'
      AND user_of.management_cluster_id = held.management_cluster_id
      AND user_of.accepted ->> 'cloudCredential' = held.credential
)
GROUP BY held.namespace, held.credential
HAVING (min(held.remembered_at), held.namespace, held.credential) > ($3, $4, $5)
ORDER BY min(held.remembered_at), held.namespace, held.credential
LIMIT $2
"""

_BEFORE_ALL: Final = (datetime(1970, 1, 1, tzinfo=UTC), "", "")


class PostgresHoldLedger:
    """Implements `ports.store.aggregates.HoldLedger` for one management cluster."""

    def __init__(self, store: FencedStore, cluster_id: ids.ManagementClusterID) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._loose_after = _BEFORE_ALL

    async def remember(self, hold: SharedHold) -> None:
        """Store what is about to be held; what is stored and not being let go is only read."""
        with translated("remember hold"):
            if await self._store.fetchval(_KNOWN, self._cluster_id, *_identity(hold)):
                return
            async with self._store.write() as connection:
                await connection.execute(_REMEMBER, self._cluster_id, *_identity(hold))

    async def loosen(self, hold: SharedHold) -> SharedHold | None:
        """Mark what is about to be released, unless it was written since it was read."""
        with translated("loosen hold"):
            async with self._store.write() as connection:
                revision = await connection.fetchval(
                    _LOOSEN, self._cluster_id, *_identity(hold), hold.revision
                )
        return None if revision is None else replace(hold, revision=revision)

    async def list_in_namespace(self, namespace: str) -> Sequence[SharedHold]:
        """Return what is held in a namespace, in a fixed order."""
        with translated("list holds"):
            rows = await self._store.fetch(_LIST, self._cluster_id, namespace)
        return [SharedHold(**row) for row in rows]

    async def forget(self, hold: SharedHold) -> None:
        """Delete a marked row unless it was remembered again since."""
        with translated("forget hold"):
            async with self._store.write() as connection:
                await connection.execute(_FORGET, self._cluster_id, *_identity(hold), hold.revision)

    async def list_loose(self) -> Sequence[tuple[str, str]]:
        """Return namespace and credential of what nobody uses any more, oldest first.

        Asked again, it goes on behind the LOOSE_MAX it returned last, so that those that cannot
        be released keep none of the others waiting.
        """
        after, self._loose_after = self._loose_after, _BEFORE_ALL
        with translated("list loose holds"):
            rows = await self._store.fetch(_LIST_LOOSE, self._cluster_id, LOOSE_MAX, *after)
        if len(rows) == LOOSE_MAX:
            last = rows[-1]
            self._loose_after = (last["since"], last["namespace"], last["credential"])
        return [(row["namespace"], row["credential"]) for row in rows]


def _identity(hold: SharedHold) -> tuple[str, str, str, str, str]:
    return hold.namespace, hold.api_version, hold.kind, hold.name, hold.credential
