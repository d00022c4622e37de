"""A program beside a schema that is not its own: one version newer, too new, or older."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from reconciler.adapters.postgres.connection import migrate
from reconciler.adapters.postgres.connection.migrate import MigrationError

pytestmark = pytest.mark.integration

BEFORE, NEXT, AFTER_NEXT = "0027", "9998", "9999"


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


async def _brought_to(connection: asyncpg.Connection, revision: str, *, oldest: str) -> None:
    """Do to the schema what a program of a later version would."""
    await connection.execute("UPDATE plexsphere.schema_version SET version_num = $1", revision)
    await connection.execute(
        "UPDATE plexsphere.schema_compatibility SET oldest_program = $1", oldest
    )


async def test_f07_a_program_starts_on_a_schema_that_is_newer_and_takes_it(
    dsn: str, connection: asyncpg.Connection
) -> None:
    await _brought_to(connection, NEXT, oldest=str(migrate.head()))

    assert await migrate.migrate(dsn) == NEXT
    assert await migrate.check(dsn) == NEXT


@pytest.mark.parametrize("oldest", [NEXT, AFTER_NEXT])
async def test_f34_a_program_too_old_for_its_schema_says_what_it_needs(
    dsn: str, connection: asyncpg.Connection, oldest: str
) -> None:
    await _brought_to(connection, AFTER_NEXT, oldest=oldest)

    for refused in (migrate.migrate, migrate.check):
        with pytest.raises(MigrationError, match=f"9999.* revision {oldest}"):
            await refused(dsn)


async def test_a_newer_schema_without_a_word_on_older_programs_is_refused(
    dsn: str, connection: asyncpg.Connection
) -> None:
    await _brought_to(connection, NEXT, oldest=NEXT)
    await connection.execute("DELETE FROM plexsphere.schema_compatibility")

    with pytest.raises(MigrationError, match="a later version"):
        await migrate.migrate(dsn)


async def test_a_revision_between_is_not_taken_for_done_on_a_newer_schema(
    dsn: str, connection: asyncpg.Connection
) -> None:
    head = str(migrate.head())
    await _brought_to(connection, NEXT, oldest=head)

    with pytest.raises(MigrationError, match="does not know"):
        await migrate.migrate(dsn, target=head)
    with pytest.raises(MigrationError, match="does not know"):
        await migrate.downgrade(dsn, BEFORE)

    assert await migrate.current(dsn) == NEXT


async def test_a_migration_that_takes_too_long_says_so_and_changes_nothing(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate.migrate(empty_dsn, target=BEFORE)
    monkeypatch.setattr(migrate, "_RUN_TIMEOUT_S", 0.5)
    holder = await asyncpg.connect(empty_dsn)
    await holder.execute("SELECT pg_advisory_lock($1)", migrate._LOCK_KEY)

    with pytest.raises(MigrationError, match=r"cannot migrate schema to head: .*within 0\.5 s"):
        await migrate.migrate(empty_dsn)

    await holder.close()
    assert await migrate.current(empty_dsn) == BEFORE


async def test_a_migrator_that_is_cut_off_says_so(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(*_: object, **__: object) -> str | None:
        raise ConnectionResetError

    monkeypatch.setattr(migrate, "_attempt", cut_off)

    with pytest.raises(MigrationError, match="connection was lost: ConnectionResetError"):
        await migrate.migrate(empty_dsn)


async def test_a_check_of_an_older_schema_says_how_to_bring_it_up(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target=BEFORE)

    with pytest.raises(MigrationError, match=f"is at {BEFORE}.*`broker migrate`"):
        await migrate.check(empty_dsn)

    assert await migrate.current(empty_dsn) == BEFORE


async def test_a_check_of_an_empty_database_says_how_to_bring_it_up(empty_dsn: str) -> None:
    with pytest.raises(MigrationError, match=r"is not there.*`broker migrate`"):
        await migrate.check(empty_dsn)


async def test_a_check_of_this_versions_schema_gives_its_revision(dsn: str) -> None:
    assert await migrate.check(dsn) == migrate.head()
