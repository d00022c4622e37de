"""Bring a database to a revision, or back.

Running the revisions of `migrations` with a lock and a limit. Alembic orders the revisions
and writes one SQL script (its offline mode); asyncpg runs that script in one transaction,
so a step that fails leaves nothing behind. Alembic is imported here and in `migrations`
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
from pathlib import Path
from typing import Final, LiteralString

import asyncpg
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from alembic.util.exc import CommandError

from reconciler.adapters.postgres.connection.pool import reaching

SCHEMA: Final = "plexsphere"
_VERSION_TABLE: Final = "schema_version"
_LOCK_KEY: Final = 0x706C6578
"""The advisory lock's key: "plex" in ASCII, ours alone in our database."""
_LOCK_WAIT: Final = "30s"
"""Longest wait for another migrator: every step of ours is far shorter."""
_TABLE_WAIT: Final = "2s"
"""Longest wait for a table: who wants it meanwhile waits behind us, a registration for 3 s. More
than the second after which Postgres looks for a deadlock."""
_ATTEMPTS: Final = 5
"""Times that a table in use is tried: a program at work leaves gaps, a forgotten transaction none,
and a rollout should hear of that within a quarter of a minute."""
_PAUSE_S: Final = 1.0
"""Longest pause between two attempts, in which who waited behind us gets through."""
_IN_USE: Final = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
_CONNECT_TIMEOUT_S: Final = 10.0
_RUN_TIMEOUT_S: Final = 600.0
"""Ten minutes: rewriting a table of a million rows takes one."""

_CREATE_SCHEMA: LiteralString = "CREATE SCHEMA IF NOT EXISTS plexsphere"
_LIMIT_WAIT: LiteralString = "SELECT set_config('lock_timeout', $1, true)"
_LOCK: LiteralString = "SELECT pg_advisory_xact_lock($1)"
_HAS_VERSION: LiteralString = "SELECT to_regclass('plexsphere.schema_version') IS NOT NULL"
_HAS_OLDEST: LiteralString = "SELECT to_regclass('plexsphere.schema_compatibility') IS NOT NULL"
_DROP_VERSION: LiteralString = "DROP TABLE IF EXISTS plexsphere.schema_version"
_VERSION: LiteralString = "SELECT version_num FROM plexsphere.schema_version"
_OLDEST: LiteralString = "SELECT oldest_program FROM plexsphere.schema_compatibility"


class MigrationError(Exception):
    """The schema could not be brought to a revision; it is as it was before."""


async def migrate(dsn: str, *, target: str = "head") -> str | None:
    """Bring the schema up to a revision.

    Args:
        dsn: Where the database is.
        target: A revision such as `0026`, or `head` for the newest. A schema that a later
            program brought further stays as it is, if that one still takes this program.

    Returns:
        The revision that the schema has now.

    Raises:
        MigrationError: No such revision, another migrator holds the lock for longer than
            30 s, a table was in use at each of five attempts, a statement failed or took longer
            than ten minutes, the connection was lost, or the schema is one of a later program
            that does not take this one.
        StoreError: The database cannot be reached.

    Idempotency: a schema that is there already stays as it is; two migrators at once are
    serialised by an advisory lock, and the second finds nothing to do.
    """
    return await _run(dsn, target=target, up=True)


async def downgrade(dsn: str, target: str) -> str | None:
    """Take the schema back to a revision, or to `base`, which drops every table.

    Raises:
        MigrationError: As for `migrate`.
        StoreError: As for `migrate`.
    """
    return await _run(dsn, target=target, up=False)


async def check(dsn: str) -> str:
    """Return the schema's revision if this program may work on it; nothing is written.

    Raises:
        MigrationError: The schema is not there, is older than this program, or is one of a
            later program that does not take this one.
        StoreError: The database cannot be reached.
    """
    with reaching():
        connection = await asyncpg.connect(dsn, timeout=_CONNECT_TIMEOUT_S)
    try:
        found = await _current(connection)
        if _is_unknown(found):
            await _refuse_too_new(connection, found)
        elif found != head():
            state = "is not there" if found is None else f"is at {found}"
            message = (
                f"cannot use schema: it {state}, this program needs {head()}: run `broker migrate`"
            )
            raise MigrationError(message)
        return str(found)
    finally:
        await connection.close()


async def current(dsn: str) -> str | None:
    """Return the schema's revision, or None for a database without ours."""
    connection = await asyncpg.connect(dsn, timeout=_CONNECT_TIMEOUT_S)
    try:
        return await _current(connection)
    finally:
        await connection.close()


def head() -> str | None:
    """Return the newest revision that this program knows."""
    return _scripts().get_current_head()


async def _run(dsn: str, *, target: str, up: bool) -> str | None:
    with reaching():
        connection = await asyncpg.connect(
            dsn, timeout=_CONNECT_TIMEOUT_S, command_timeout=_RUN_TIMEOUT_S
        )
    try:
        for _ in range(_ATTEMPTS - 1):
            try:
                return await _attempt(connection, target, up=up)
            except _IN_USE:
                await asyncio.sleep(_PAUSE_S * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
        return await _attempt(connection, target, up=up)
    except _IN_USE as error:
        message = f"cannot migrate schema to {target}: a table was in use {_ATTEMPTS} times"
        raise MigrationError(message) from error
    except asyncpg.RaiseError as error:
        # Our own scripts' words, which name no values.
        message = f"cannot migrate schema to {target}: {error.message}"
        raise MigrationError(message) from error
    except asyncpg.PostgresError as error:
        message = f"cannot migrate schema to {target}: the database answered {error.sqlstate}"
        raise MigrationError(message) from error
    except TimeoutError as error:
        message = f"cannot migrate schema to {target}: not done within {_RUN_TIMEOUT_S:g} s"
        raise MigrationError(message) from error
    except (OSError, asyncpg.InterfaceError) as error:
        cause = type(error).__name__
        message = f"cannot migrate schema to {target}: the connection was lost: {cause}"
        raise MigrationError(message) from error
    finally:
        # A server that does not answer ends no session; what failed before is to be told.
        with contextlib.suppress(OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
            await connection.close(timeout=_CONNECT_TIMEOUT_S)


async def _attempt(connection: asyncpg.Connection, target: str, *, up: bool) -> str | None:
    async with connection.transaction():
        await connection.execute(_LIMIT_WAIT, _LOCK_WAIT)
        try:
            await connection.execute(_LOCK, _LOCK_KEY)
        except asyncpg.LockNotAvailableError as error:
            message = f"cannot migrate schema: another migrator holds the lock for {_LOCK_WAIT}"
            raise MigrationError(message) from error
        await connection.execute(_LIMIT_WAIT, _TABLE_WAIT)
        await connection.execute(_CREATE_SCHEMA)
        start = await _current(connection)
        if start is None:
            # Alembic creates its table from nothing and leaves an empty one at base.
            await connection.execute(_DROP_VERSION)
        if _is_unknown(start):
            if not up or target != "head":
                message = (
                    f"cannot migrate schema: it is at {start}, which this program does not know"
                )
                raise MigrationError(message)
            await _refuse_too_new(connection, start)
            return start
        statements = _statements(start, target, up=up)
        if statements:
            await connection.execute(statements)
        return await _current(connection)


def _is_unknown(revision: str | None) -> bool:
    """Tell whether a later program brought the schema to this revision."""
    known = (script.revision for script in _scripts().walk_revisions())
    return revision is not None and revision not in known


async def _refuse_too_new(connection: asyncpg.Connection, found: str | None) -> None:
    """Refuse a revision unknown to us unless it takes a program as old as this one."""
    oldest = None
    if await connection.fetchval(_HAS_OLDEST):
        oldest = await connection.fetchval(_OLDEST)
    # Revisions are numbers of four digits, which sort as text.
    if oldest is None or str(head()) < oldest:
        wanted = "a later version" if oldest is None else f"revision {oldest} or later"
        message = f"cannot use schema: it is at {found}, which takes {wanted}; this one is {head()}"
        raise MigrationError(message)


async def _current(connection: asyncpg.Connection) -> str | None:
    if not await connection.fetchval(_HAS_VERSION):
        return None
    version = await connection.fetchval(_VERSION)
    return None if version is None else str(version)


def _statements(start: str | None, target: str, *, up: bool) -> str:
    scripts = _scripts()

    def steps(revision: object, _: MigrationContext) -> object:
        if up:
            return scripts._upgrade_revs(target, revision)  # type: ignore[arg-type]
        return scripts._downgrade_revs(target, revision)  # type: ignore[arg-type]

    output = io.StringIO()
    environment = EnvironmentContext(
        scripts_config(), scripts, fn=steps, as_sql=True, starting_rev=start,
        destination_rev=target,
    )  # fmt: skip
    with environment:
        environment.configure(
            dialect_name="postgresql",
            dialect_opts={"paramstyle": "named"},
            output_buffer=output,
            version_table=_VERSION_TABLE,
            version_table_schema=SCHEMA,
        )
        try:
            environment.run_migrations()
        except (CommandError, RevisionError) as error:
            message = f"cannot migrate schema: no path to revision {target}"
            raise MigrationError(message) from error
    return output.getvalue()


def scripts_config() -> Config:
    """Return alembic's configuration: where the revisions are, nothing else."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(scripts_config())
