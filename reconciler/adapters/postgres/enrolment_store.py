"""Enrolment's durable side on Postgres.

Belongs here: where a registration's transaction begins and ends, the audit, bearers and
heartbeats. Not here: the statements of a registration (`registration_transaction`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, LiteralString
from uuid import UUID

import asyncpg

from reconciler.adapters.postgres.classify import translated
from reconciler.adapters.postgres.registration_transaction import PostgresRegistration
from reconciler.domain.broker import ids
from reconciler.ports.identity import (
    DeniedRegistration,
    NodeCredential,
    RegistrationTransaction,
)

DENIALS_MAX: Final = 100_000
"""Newest denials that are kept: anybody can cause one, and ten megabytes hold them."""

LOCK_WAIT: Final = timedelta(seconds=3)
"""Longest wait for a lock: thrice of it is still below a request's deadline."""

_LIMIT_WAIT: LiteralString = "SELECT set_config('lock_timeout', $1, true)"

_PROJECT_OF: LiteralString = """
SELECT project_id FROM plexsphere.bootstrap_tokens WHERE token_hash = $1
"""

_RECORD_DENIAL: LiteralString = """
INSERT INTO plexsphere.enrolment_audit
    (code, status, bootstrap_token_id, project_id, remote_address)
VALUES ($1, $2, $3, $4, $5)
RETURNING sequence
"""

_PRUNE_DENIALS: LiteralString = """
DELETE FROM plexsphere.enrolment_audit WHERE sequence <= $1
"""

_CREDENTIAL: LiteralString = """
SELECT id, nsk_hash, deregistered_at IS NOT NULL AS deregistered
FROM plexsphere.nodes WHERE id = $1
"""

_HEARTBEAT: LiteralString = """
UPDATE plexsphere.nodes SET last_heartbeat_at = now(), binary_version = $2
WHERE id = $1 AND deregistered_at IS NULL
RETURNING last_heartbeat_at
"""


class PostgresEnrolmentStore:
    """Implements `ports.identity.EnrolmentStore`.

    Args:
        pool: Where the rows are.
        lock_wait: Longest wait for one lock of a registration.
    """

    def __init__(self, pool: asyncpg.Pool, *, lock_wait: timedelta = LOCK_WAIT) -> None:
        self._pool = pool
        self._lock_wait_ms = max(1, lock_wait // timedelta(milliseconds=1))

    @asynccontextmanager
    async def registration(self) -> AsyncIterator[RegistrationTransaction]:
        """Open one transaction; it commits at a clean end and rolls back on an error."""
        with translated("register node"):
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(_LIMIT_WAIT, f"{self._lock_wait_ms}ms")
                yield PostgresRegistration(connection)

    async def find_project(self, token_digest: bytes) -> ids.ProjectID | None:
        """Return the Project that a token was minted for, or None for an unknown token."""
        with translated("find token"):
            project = await self._pool.fetchval(_PROJECT_OF, token_digest)
        return None if project is None else ids.ProjectID(UUID(int=project.int))

    async def record_denial(self, denial: DeniedRegistration) -> None:
        """Append a denial to the audit, and forget what is older than the newest 100,000."""
        with translated("record denial"):
            sequence = await self._pool.fetchval(
                _RECORD_DENIAL, denial.code, denial.status, denial.token_id, denial.project_id,
                denial.remote_address,
            )  # fmt: skip
            await self._pool.execute(_PRUNE_DENIALS, sequence - DENIALS_MAX)

    async def find_credential(self, node_id: ids.NodeID) -> NodeCredential | None:
        """Return what a node's bearer is checked against, or None for an unknown node."""
        with translated("find node"):
            row = await self._pool.fetchrow(_CREDENTIAL, node_id)
        if row is None:
            return None
        return NodeCredential(
            node_id=node_id, nsk_digest=row["nsk_hash"], deregistered=row["deregistered"]
        )

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        """Note that a node is alive; None when it left the mesh meanwhile."""
        with translated("record heartbeat"):
            at: datetime | None = await self._pool.fetchval(_HEARTBEAT, node_id, binary_version)
        return at
