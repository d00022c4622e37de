"""The connection pool, with the codecs every repository relies on.

Belongs here: how connections are made and how long anything may take. Not here: queries.
"""

from __future__ import annotations

import json
from typing import Final

import asyncpg

POOL_MAX: Final = 20
"""Connections of one process: one for each of its workers and some for the listener, far
below the hundred that Postgres allows by default."""
COMMAND_TIMEOUT_S: Final = 10.0
"""Longest single statement: every one of ours is an index lookup or a short range."""
CONNECT_TIMEOUT_S: Final = 10.0


async def open_pool(dsn: str, *, size_max: int = POOL_MAX) -> asyncpg.Pool:
    """Open a pool whose connections decode jsonb; the caller closes it.

    Args:
        dsn: Where the database is; never part of an error of ours.
        size_max: Most connections at once.

    Raises:
        OSError: The server cannot be reached.
        asyncpg.PostgresError: It refuses us.
    """
    return await asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=size_max,
        command_timeout=COMMAND_TIMEOUT_S,
        timeout=CONNECT_TIMEOUT_S,
        init=_prepare,
        server_settings={"application_name": "plexsphere-broker"},
    )


async def _prepare(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb", encoder=_encode, decoder=json.loads, schema="pg_catalog"
    )


def _encode(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


async def ping(pool: asyncpg.Pool) -> None:
    """Ask the server one question; the readiness probe.

    Raises:
        OSError: The server cannot be reached.
        asyncpg.PostgresError: It refuses us.
        asyncpg.InterfaceError: The pool is closed.
    """
    await pool.execute("SELECT 1")
