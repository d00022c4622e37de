"""Retention on Postgres.

Which rows are over, and the order that their references ask for. Four audits are
append-only and stay; strangers' denials have a limit of rows. Source:
docs/operations/retention.md.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, LiteralString
from uuid import UUID

import asyncpg

from reconciler.adapters.postgres.connection.classify import translated
from reconciler.ports.store.retention import Remains, RetentionBatch

_LOCK_KEY: Final = 0x706C7265
"""The advisory lock's key: "plre" in ASCII, ours alone in our database."""
_ZERO: Final = UUID(int=0)
_TIMEOUT_S: Final = 60.0
"""Longest statement: one look through a million rows by their key takes some seconds."""

_LOCK: LiteralString = "SELECT pg_try_advisory_xact_lock($1)"
_BEFORE: LiteralString = "SELECT now() - $1::interval"

_EVENTS: LiteralString = """
SELECT id FROM plexsphere.outbox_events
WHERE id > $1 AND id < $4 AND published_at < $2
ORDER BY id LIMIT $3
FOR UPDATE SKIP LOCKED
"""
"""An id begins with when the event was made, so that what is too young is not looked at."""

_TOKENS: LiteralString = """
SELECT token.id FROM plexsphere.bootstrap_tokens AS token
JOIN plexsphere.provisioned_resources AS resource ON resource.id = token.provisioned_resource_id
LEFT JOIN plexsphere.nodes AS node ON node.bootstrap_token_id = token.id
WHERE token.id > $1 AND coalesce(token.consumed_at, token.revoked_at, token.expires_at) < $2
  AND (resource.status = 'Deleted' OR token.generation < resource.generation
       AND token.id IS DISTINCT FROM resource.bootstrap_token_id)
  AND (node.id IS NULL OR node.deregistered_at < $2)
ORDER BY token.id LIMIT $3
FOR UPDATE OF token SKIP LOCKED
"""

_RESOURCES: LiteralString = """
SELECT id FROM plexsphere.provisioned_resources AS resource
WHERE id > $1 AND status = 'Deleted' AND updated_at < $2
  AND NOT protected @> '[{"sibling": true, "released": false}]'
  AND NOT EXISTS (
    SELECT FROM plexsphere.bootstrap_tokens WHERE provisioned_resource_id = resource.id
  )
  AND NOT EXISTS (
    SELECT FROM plexsphere.outbox_events
    WHERE aggregate_id = resource.id AND published_at IS NULL
  )
ORDER BY id LIMIT $3
FOR UPDATE SKIP LOCKED
"""

_ORPHANS: LiteralString = """
DELETE FROM plexsphere.orphans WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM plexsphere.orphans WHERE gone_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
))
RETURNING true
"""

_REMOVE_GUARDS: LiteralString = """
DELETE FROM plexsphere.provisioned_resource_outbox_token WHERE provisioned_resource_id = ANY($1)
"""

_FIND: Final = {
    Remains.EVENTS: _EVENTS,
    Remains.TOKENS: _TOKENS,
    Remains.RESOURCES: _RESOURCES,
}
_LEAVES: Final = {Remains.ORPHANS: _ORPHANS}
"""What nothing refers to, and what no other row keeps: one statement each."""
_REMOVE: Final[dict[Remains, tuple[LiteralString, ...]]] = {
    Remains.EVENTS: ("DELETE FROM plexsphere.outbox_events WHERE id = ANY($1)",),
    Remains.TOKENS: (
        "DELETE FROM plexsphere.registration_nonces WHERE bootstrap_token_id = ANY($1)",
        "DELETE FROM plexsphere.nodes WHERE bootstrap_token_id = ANY($1)",
        "DELETE FROM plexsphere.bootstrap_tokens WHERE id = ANY($1)",
    ),
    Remains.RESOURCES: (
        _REMOVE_GUARDS,
        "DELETE FROM plexsphere.provisioned_resources WHERE id = ANY($1)",
    ),
}


class PostgresRetention:
    """Implements `ports.store.retention.RetentionStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def remove(
        self, remains: Remains, *, keep: timedelta, after: UUID | None, limit: int
    ) -> RetentionBatch | None:
        """Remove a batch of what has been over for longer than `keep`; None if another does."""
        with translated(f"remove {remains}"):
            async with self._pool.acquire() as connection, connection.transaction():
                if not await connection.fetchval(_LOCK, _LOCK_KEY):
                    return None
                before = await connection.fetchval(_BEFORE, keep)
                if remains in _LEAVES:
                    rows = await connection.fetch(
                        _LEAVES[remains], before, limit, timeout=_TIMEOUT_S
                    )
                    return RetentionBatch(
                        removed=len(rows), last=_ZERO if len(rows) == limit else None
                    )
                values = [after or _ZERO, before, limit]
                if remains is Remains.EVENTS:
                    values.append(_bound(before))
                rows = await connection.fetch(_FIND[remains], *values, timeout=_TIMEOUT_S)
                found = [row["id"] for row in rows]
                for statement in _REMOVE[remains]:
                    await connection.execute(statement, found)
        last = UUID(int=found[-1].int) if len(found) == limit else None
        return RetentionBatch(removed=len(found), last=last)


def _bound(before: datetime) -> UUID:
    """Return the least UUIDv7 of a time (RFC 9562, 5.7)."""
    return UUID(int=int(before.timestamp() * 1000) << 80)
