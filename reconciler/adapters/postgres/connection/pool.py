"""The connection pool, with the codecs every repository relies on.

How connections are made and how long anything may take.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, LiteralString

import asyncpg

POOL_MAX: Final = 20
"""Connections of one process: one for each of its workers and some for the listener, far
below the hundred that Postgres allows by default."""
COMMAND_TIMEOUT_S: Final = 10.0
"""Longest single statement: every one of ours is an index lookup or a short range."""
CONNECT_TIMEOUT_S: Final = 10.0


class StoreError(Exception):
    """Postgres cannot be used as PLEXSPHERE_DSN says; the message names no value of it."""


@contextmanager
def reaching() -> Iterator[None]:
    """Say in one sentence why a connection cannot be opened.

    Raises:
        StoreError: The server does not answer, does not let us in, or the DSN is unusable.
    """
    try:
        yield
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        message = "cannot reach Postgres: it refuses the user or the password of PLEXSPHERE_DSN"
        raise StoreError(message) from error
    except asyncpg.InvalidCatalogNameError as error:
        message = "cannot reach Postgres: the database that PLEXSPHERE_DSN names does not exist"
        raise StoreError(message) from error
    except asyncpg.PostgresError as error:
        message = f"cannot reach Postgres: the server of PLEXSPHERE_DSN answers {error.sqlstate}"
        raise StoreError(message) from error
    except (FileNotFoundError, ValueError, OverflowError, asyncpg.InterfaceError) as error:
        # A client's own configuration errors are ValueErrors; a missing socket or CA file is not
        # there whoever asks.
        message = "cannot reach Postgres: PLEXSPHERE_DSN has an option or a port that is unusable"
        raise StoreError(message) from error
    except (OSError, TimeoutError) as error:
        message = "cannot reach Postgres: PLEXSPHERE_DSN names a server that does not answer"
        raise StoreError(message) from error


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
        reset=_keep,
        server_settings={"application_name": "plexsphere-broker"},
    )


_PLANNING: LiteralString = """
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET jit = off
"""
"""Every statement of ours finds its rows by a key. Its plan depends on no value, so one lasts a
connection's life; and a plan of when a table was small must not read all of it for that long.
Compiled plans pay for queries that take a second."""


_ABSENCE: LiteralString = """
SET idle_in_transaction_session_timeout = '4s';
SET tcp_user_timeout = '5s';
SET tcp_keepalives_idle = '5s';
SET tcp_keepalives_interval = '2s';
SET tcp_keepalives_count = 2
"""
"""When a process that was stopped or cut off releases what it locked: before its lease is over,
so that nobody waits for it. Nothing of ours thinks for seconds inside a transaction."""


async def _prepare(connection: asyncpg.Connection) -> None:
    await connection.execute(_PLANNING)
    await connection.execute(_ABSENCE)
    await connection.set_type_codec(
        "jsonb", encoder=_encode, decoder=json.loads, schema="pg_catalog"
    )


async def _keep(_connection: asyncpg.Connection) -> None:
    # The driver asks the server to forget listeners, session locks and settings after every
    # use, one round trip each. We make none: locks and settings are a transaction's.
    return


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
