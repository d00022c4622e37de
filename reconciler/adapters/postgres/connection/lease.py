"""Leases on Postgres, by its clock alone.

The rows of `driver_leases`, on a connection of their own: a renewal must not queue behind
anybody's work. Source: docs/decisions/0015.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

import asyncpg

from reconciler.adapters.postgres.connection.classify import passing
from reconciler.ports.store.lease import Lease

CONNECT_TIMEOUT_S: Final = 2.0
"""One attempt to connect: after it, another one fits into a term of the default length."""
_HOLDER_MAX: Final = 128
"""Characters of a holder that are stored: the last ones, which tell it from others."""

_TAKE: LiteralString = """
UPDATE plexsphere.driver_leases
SET holder = $2, fence = fence + 1, expires_at = clock_timestamp() + $3::interval
WHERE key = $1 AND (expires_at <= clock_timestamp() OR holder = $2)
RETURNING fence
"""
"""A holder takes its own again: the server may have done what it never answered."""

_MAKE: LiteralString = """
INSERT INTO plexsphere.driver_leases (key, holder, fence, expires_at)
VALUES ($1, $2, 1, clock_timestamp() + $3::interval)
ON CONFLICT DO NOTHING
RETURNING fence
"""
"""Naming no index: of those that come at once, some meet the one on key and fence first."""

_HELD: LiteralString = """
SELECT true FROM plexsphere.driver_leases
WHERE key = $1 AND expires_at > clock_timestamp() AND holder <> $2
"""
"""Who stands by asks once a second, and locks nothing for it."""

_RENEW: LiteralString = """
UPDATE plexsphere.driver_leases SET expires_at = clock_timestamp() + $3::interval
WHERE key = $1 AND fence = $2
RETURNING true
"""

_RELEASE: LiteralString = """
UPDATE plexsphere.driver_leases SET expires_at = clock_timestamp() WHERE key = $1 AND fence = $2
"""


class PostgresLeases:
    """Implements `ports.store.lease.LeaseStore`; used by one task at a time.

    Args:
        dsn: Where the database is; never part of an error of ours.
        answer_within: Longest wait for one answer; then the connection is given up.
    """

    def __init__(self, dsn: str, *, answer_within: timedelta) -> None:
        self._dsn = dsn
        self._answer_within_s = answer_within.total_seconds()
        self._connection: asyncpg.Connection | None = None

    async def acquire(self, key: UUID, *, holder: str, ttl: timedelta) -> Lease | None:
        """Take a lease that nobody else holds; None while somebody does."""
        holder = holder[-_HOLDER_MAX:]
        with passing("take lease"):
            if await self._ask(_HELD, key, holder):
                return None
            fence = await self._ask(_TAKE, key, holder, ttl)
            if fence is None:
                fence = await self._ask(_MAKE, key, holder, ttl)
        return None if fence is None else Lease(key=key, holder=holder, fence=fence)

    async def renew(self, lease: Lease, *, ttl: timedelta) -> bool:
        """Let a lease's time start again; False when somebody else took it over."""
        with passing("renew lease"):
            return bool(await self._ask(_RENEW, lease.key, lease.fence, ttl))

    async def release(self, lease: Lease) -> None:
        """End a lease's time now."""
        with passing("release lease"):
            await self._ask(_RELEASE, lease.key, lease.fence)

    def close(self) -> None:
        """Drop the connection. Idempotency: the next call opens another one."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _ask(self, statement: LiteralString, *values: Any) -> Any:
        try:
            connection = await self._connected()
            return await connection.fetchval(statement, *values)
        except BaseException:
            # Nothing is known of a connection that failed or was left in the middle.
            self.close()
            raise

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(
                self._dsn,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=self._answer_within_s,
                server_settings={"application_name": "plexsphere-broker-lease"},
            )
        return self._connection
