"""The operators' view of tokens, nodes and placements.

Metadata of tokens and placements, and an operator's revocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

import asyncpg

from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.registration import operator_nodes
from reconciler.domain.aggregate import ids
from reconciler.domain.storable_text import storable
from reconciler.ports.operators import (
    Assignment,
    NamedID,
    NodeDeregistration,
    TokenMetadata,
    TokenRevocation,
)

_ASSIGNMENT: LiteralString = """
SELECT project_id, management_cluster_id, region, namespace_name, namespace_phase,
       assigned_at, updated_at
FROM plexsphere.project_cluster_assignments WHERE project_id = $1
"""

_METADATA: LiteralString = """
SELECT id, project_id, provisioned_resource_id AS resource_id, generation, kind,
       env AS env_prefix, issued_at, expires_at, consumed_at, revoked_at
FROM plexsphere.bootstrap_tokens WHERE project_id = $1
"""

_ONE: LiteralString = _METADATA + " AND id = $2"

_PAGE: LiteralString = _METADATA + " AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3"

_LOCK: LiteralString = """
SELECT true FROM plexsphere.provisioned_resources
WHERE id = (SELECT provisioned_resource_id FROM plexsphere.bootstrap_tokens
            WHERE project_id = $1 AND id = $2)
FOR NO KEY UPDATE
"""

_REVOKE: LiteralString = """
WITH revoked AS (
    UPDATE plexsphere.bootstrap_tokens SET revoked_at = clock_timestamp()
    WHERE project_id = $1 AND id = $2 AND consumed_at IS NULL AND revoked_at IS NULL
    RETURNING provisioned_resource_id, revoked_at
)
INSERT INTO plexsphere.operator_audit
    (at, actor, action, project_id, provisioned_resource_id, bootstrap_token_id)
SELECT revoked_at, $3, 'revoke-token', $1, provisioned_resource_id, $2 FROM revoked
RETURNING true
"""


class PostgresOperatorStore:
    """Implements `ports.operators.OperatorStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def assignment(self, project: ids.ProjectID) -> Assignment | None:
        """Return where a Project lives; None when it was never placed."""
        with translated("read assignment"):
            row = await self._pool.fetchrow(_ASSIGNMENT, project)
        return None if row is None else Assignment(**row)

    async def tokens(
        self, project: ids.ProjectID, *, after: ids.BootstrapTokenID | None, limit: int
    ) -> Sequence[TokenMetadata]:
        """Return a Project's tokens by id, at most `limit` after one of them."""
        with translated("list tokens"):
            rows = await self._pool.fetch(_PAGE, project, after, limit)
        return [TokenMetadata(**row) for row in rows]

    async def token(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID
    ) -> TokenMetadata | None:
        """Return one of a Project's tokens, or None."""
        with translated("read token"):
            row = await self._pool.fetchrow(_ONE, project, token)
        return None if row is None else TokenMetadata(**row)

    async def named(self, project: ids.ProjectID, wanted: UUID) -> NamedID | None:
        """Return what an id of a Project stands for."""
        return await operator_nodes.named(self._pool, project, wanted)

    async def deregister(
        self, project: ids.ProjectID, node: ids.NodeID, *, by: str, reason: str
    ) -> NodeDeregistration:
        """Take a node out that its resource left behind, and audit who did and why."""
        with translated("deregister node"):
            async with self._pool.acquire() as connection:
                return await operator_nodes.deregister(
                    connection, node, project=project, by=by, reason=reason
                )

    async def revoke(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID, *, by: str
    ) -> TokenRevocation:
        """Revoke one of a Project's tokens, unless it is spent, and audit who did."""
        actor = storable(by)[: operator_nodes.ACTOR_MAX]
        with translated("revoke token"):
            async with self._pool.acquire() as connection, connection.transaction():
                # The resource first, as in a registration: two orders would deadlock.
                if not await connection.fetchval(_LOCK, project, token):
                    return TokenRevocation.ABSENT
                revoked = await connection.fetchval(_REVOKE, project, token, actor)
        return TokenRevocation.REVOKED if revoked else TokenRevocation.SPENT
