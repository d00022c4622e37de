"""Revokes what may have been used since the backup that a store was restored from.

Ending the tokens that may have been used since. Source: docs/operations/backup.md; peers
§4.2, fault 26.
"""

from __future__ import annotations

from typing import Final, LiteralString

import asyncpg

from reconciler.adapters.postgres.connection.classify import translated

BATCH: Final = 500
"""Resources of one transaction: it holds their locks for some milliseconds."""
BATCHES_MAX: Final = 2_000
"""A million resources with a live token: more than a broker drives."""
ACTOR_MAX: Final = 1024

_LOCK: LiteralString = """
SELECT id FROM plexsphere.provisioned_resources AS resource
WHERE EXISTS (
    SELECT FROM plexsphere.bootstrap_tokens
    WHERE provisioned_resource_id = resource.id AND consumed_at IS NULL AND revoked_at IS NULL
)
ORDER BY id LIMIT $1
FOR NO KEY UPDATE
"""
_REVOKE: LiteralString = """
WITH revoked AS (
    UPDATE plexsphere.bootstrap_tokens SET revoked_at = clock_timestamp()
    WHERE provisioned_resource_id = ANY($1) AND consumed_at IS NULL AND revoked_at IS NULL
    RETURNING id, project_id, provisioned_resource_id, revoked_at
), audited AS (
    INSERT INTO plexsphere.operator_audit
        (at, actor, action, project_id, provisioned_resource_id, bootstrap_token_id)
    SELECT revoked_at, $2, 'revoke-token', project_id, provisioned_resource_id, id FROM revoked
)
SELECT count(*) FROM revoked
"""


async def revoke_unspent(pool: asyncpg.Pool, *, actor: str) -> int:
    """Revoke and audit every token that nobody consumed as far as the store knows.

    Since the backup was made a machine may have registered with one; that it did is lost, and
    the token must not register another.

    Args:
        pool: Where the rows are.
        actor: Who says so, and why; its first 1,024 characters are kept.

    Returns:
        How many were revoked.

    Raises:
        StoreUnavailableError: The database cannot be reached.

    Idempotency: what was revoked is not found again.
    """
    revoked = 0
    with translated("revoke unspent tokens"):
        for _ in range(BATCHES_MAX):
            async with pool.acquire() as connection, connection.transaction():
                # The resource first, as in a registration: two orders would deadlock.
                rows = await connection.fetch(_LOCK, BATCH)
                found = [row["id"] for row in rows]
                revoked += await connection.fetchval(_REVOKE, found, actor[:ACTOR_MAX])
            if len(found) < BATCH:
                break
    return revoked
