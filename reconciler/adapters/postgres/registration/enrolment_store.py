"""Enrolment's durable side on Postgres.

Where a registration's connection comes from, bearers, heartbeats and what nodes pull.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, LiteralString

import asyncpg

from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.registration import enrolment_audit
from reconciler.adapters.postgres.registration.registration_transaction import PostgresRegistration
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.peers import Peers
from reconciler.ports.registration import (
    DeniedRegistration,
    NodeCredential,
    NodeState,
    RegistrationUnit,
)

LOCK_WAIT: Final = timedelta(seconds=3)
"""Longest wait for a lock: thrice of it is still below a request's deadline."""
CONNECTION_WAIT_S: Final = 3.0
"""Longest wait for a connection: a 503 that says when to come again beats a late one."""

_CREDENTIAL: LiteralString = """
SELECT nsk_hash, previous_nsk_hash, earlier_nsk_hashes, deregistered_at IS NOT NULL AS deregistered,
       coalesce(reported_at, last_heartbeat_at) IS NOT NULL AS reported
FROM plexsphere.nodes WHERE id = $1
"""

_REPORT: LiteralString = """
UPDATE plexsphere.nodes
SET reported_at = now(), nsk_hash = $2,
    previous_nsk_hash = CASE WHEN nsk_hash = $2 THEN previous_nsk_hash ELSE nsk_hash END,
    earlier_nsk_hashes = CASE WHEN $2 = ANY (earlier_nsk_hashes)
        THEN array_append(array_remove(earlier_nsk_hashes, $2), previous_nsk_hash)
        ELSE earlier_nsk_hashes END
WHERE id = $1 AND reported_at IS NULL AND last_heartbeat_at IS NULL AND deregistered_at IS NULL
  AND ($2 IN (nsk_hash, previous_nsk_hash) OR $2 = ANY (earlier_nsk_hashes))
RETURNING true
"""

_HEARTBEAT: LiteralString = """
UPDATE plexsphere.nodes
SET last_heartbeat_at = now(), binary_version = $2, reported_at = coalesce(reported_at, now())
WHERE id = $1 AND deregistered_at IS NULL
RETURNING last_heartbeat_at
"""

_STATE: LiteralString = """
SELECT node.last_heartbeat_at, now() AS now,
       coalesce(node.reported_at, node.registered_at) AS changed_at,
       plexsphere.peers_of(node.project_id, node.provisioned_resource_id) AS peers
FROM plexsphere.nodes AS node
WHERE node.id = $1 AND node.deregistered_at IS NULL
"""


class PostgresEnrolmentStore:
    """Implements `ports.registration.EnrolmentStore`.

    Args:
        pool: Where the rows are.
        lock_wait: Longest wait for one lock of a registration.
    """

    def __init__(self, pool: asyncpg.Pool, *, lock_wait: timedelta = LOCK_WAIT) -> None:
        self._pool = pool
        lock_wait_ms = max(1, lock_wait // timedelta(milliseconds=1))
        self._lock_wait_ms = lock_wait_ms

    @asynccontextmanager
    async def registration(self) -> AsyncIterator[RegistrationUnit]:
        """Lend a connection for one registration."""
        with translated("register node"):
            async with self._pool.acquire(timeout=CONNECTION_WAIT_S) as connection:
                yield PostgresRegistration(connection, lock_wait_ms=self._lock_wait_ms)

    async def record_denial(self, denial: DeniedRegistration) -> None:
        """Append a denial outside a registration."""
        with translated("record denial"):
            await enrolment_audit.append(self._pool, denial)

    async def find_credential(self, node_id: ids.NodeID) -> NodeCredential | None:
        """Return what a node's bearer is checked against, or None for an unknown node."""
        with translated("find node"):
            row = await self._pool.fetchrow(_CREDENTIAL, node_id)
        if row is None:
            return None
        return NodeCredential(
            node_id=node_id,
            nsk_digest=row["nsk_hash"],
            deregistered=row["deregistered"],
            other_nsk_digests=(
                *([] if row["previous_nsk_hash"] is None else [row["previous_nsk_hash"]]),
                *row["earlier_nsk_hashes"],
            ),
            reported=row["reported"],
        )

    async def record_report(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> bool:
        """Note a node's first authenticated call, and make its key the only one."""
        with translated("record report"):
            return bool(await self._pool.fetchval(_REPORT, node_id, nsk_digest))

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        """Note that a node is alive; None when it left the mesh meanwhile."""
        with translated("record heartbeat"):
            at: datetime | None = await self._pool.fetchval(_HEARTBEAT, node_id, binary_version)
        return at

    async def read_state(self, node_id: ids.NodeID) -> NodeState | None:
        """Return what a node pulls; None when it left."""
        with translated("read node state"):
            row = await self._pool.fetchrow(_STATE, node_id)
        if row is None:
            return None
        return NodeState(
            peers=Peers(row["peers"]),
            last_heartbeat_at=row["last_heartbeat_at"],
            changed_at=row["changed_at"],
            now=row["now"],
        )
