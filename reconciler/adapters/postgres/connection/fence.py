"""A pool of connections that checks the lease's fence in every transaction.

The one way into a writing transaction of the driver. Source: docs/decisions/0015.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import asyncpg

from reconciler.ports.store.lease import FencedError, Lease

_CHECK: LiteralString = """
SELECT true FROM plexsphere.driver_leases WHERE key = $1 AND fence = $2 FOR KEY SHARE
"""
"""The fence is part of a unique key, so that a takeover, which counts it up, waits for every
transaction that has passed and lets none pass after it; a renewal waits for nobody."""


class FencedStore:
    """A pool whose writing transactions belong to a term of office.

    Args:
        pool: Where the rows are.
        lease: What each writing transaction must still hold; None for a program that drives
            nothing, such as one that fills a database.
        committed: Called after each commit; what is told by it may be looked for.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        lease: Lease | None = None,
        *,
        committed: Callable[[], None] = lambda: None,
    ) -> None:
        self._pool = pool
        self._lease = lease
        self._committed = committed

    async def fetch(self, statement: LiteralString, *values: Any) -> list[asyncpg.Record]:
        """Return what a statement reads, outside any transaction."""
        rows: list[asyncpg.Record] = await self._pool.fetch(statement, *values)
        return rows

    async def fetchrow(self, statement: LiteralString, *values: Any) -> asyncpg.Record | None:
        """Return the first row that a statement reads, or None."""
        return await self._pool.fetchrow(statement, *values)

    async def fetchval(self, statement: LiteralString, *values: Any) -> Any:
        """Return the first column of the first row that a statement reads, or None."""
        return await self._pool.fetchval(statement, *values)

    async def prove(self) -> None:
        """Begin, lock and commit as `write` does, and change nothing.

        To lock a row is a write to Postgres, which a read-only one refuses. Without a lease
        nothing is locked.

        Raises:
            FencedError: Another process took the lease over.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if self._lease is not None:
                await _check(connection, self._lease)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a transaction that nobody's takeover can overtake.

        Raises:
            FencedError: Another process took the lease over; nothing is written.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if self._lease is not None:
                await _check(connection, self._lease)
            yield connection
        self._committed()


async def _check(connection: asyncpg.Connection, lease: Lease) -> None:
    if not await connection.fetchval(_CHECK, lease.key, lease.fence):
        raise FencedError(lease)
