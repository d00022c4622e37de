"""The schema changes beside a program that is at work."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from reconciler.adapters.postgres.connection import migrate
from reconciler.adapters.postgres.connection.migrate import MigrationError

pytestmark = pytest.mark.integration

BEFORE, AFTER = "0027", "0028"
WAITS = """
SELECT xact_start FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'relation'
"""


async def _migrator_waits(dsn: str, *, attempts: int = 1) -> None:
    connection = await asyncpg.connect(dsn)
    seen: set[object] = set()
    try:
        for _ in range(500):
            seen.update(row["xact_start"] for row in await connection.fetch(WAITS))
            if len(seen) >= attempts:
                return
            await asyncio.sleep(0.01)
    finally:
        await connection.close()
    pytest.fail(f"the migrator waited for a table in {len(seen)} of {attempts} transactions")


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "_TABLE_WAIT", "100ms")
    monkeypatch.setattr(migrate, "_PAUSE_S", 0.1)


@pytest.mark.usefixtures("hurried")
async def test_a_table_in_use_is_tried_again(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target=BEFORE)
    holder = await asyncpg.connect(empty_dsn)
    row = holder.transaction()
    await row.start()
    await holder.execute("SELECT FROM plexsphere.provisioned_resources FOR UPDATE")

    migrating = asyncio.create_task(migrate.migrate(empty_dsn, target=AFTER))
    await _migrator_waits(empty_dsn, attempts=2)
    await row.rollback()

    assert await migrating == AFTER
    await holder.close()


@pytest.mark.usefixtures("hurried")
async def test_a_table_that_stays_in_use_is_said_and_nothing_is_changed(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target=BEFORE)
    holder = await asyncpg.connect(empty_dsn)
    async with holder.transaction():
        await holder.execute("SELECT FROM plexsphere.projects FOR UPDATE")

        with pytest.raises(MigrationError, match="a table was in use 5 times"):
            await migrate.migrate(empty_dsn, target=AFTER)

        assert await migrate.current(empty_dsn) == BEFORE
    await holder.close()


async def test_another_migrator_is_said(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "_LOCK_WAIT", "100ms")
    holder = await asyncpg.connect(empty_dsn)
    async with holder.transaction():
        await holder.execute("SELECT pg_advisory_xact_lock($1)", migrate._LOCK_KEY)

        with pytest.raises(MigrationError, match="another migrator"):
            await migrate.migrate(empty_dsn)
    await holder.close()


async def test_a_deadlock_with_the_program_is_outlived(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target=BEFORE)
    holder = await asyncpg.connect(empty_dsn)
    # The program is never the one that gives way.
    await holder.execute("SET deadlock_timeout = '1min'")
    async with holder.transaction():
        await holder.execute("SELECT FROM plexsphere.projects FOR UPDATE")
        migrating = asyncio.create_task(migrate.migrate(empty_dsn, target=AFTER))
        await _migrator_waits(empty_dsn)
        await holder.execute("SELECT FROM plexsphere.provisioned_resources FOR UPDATE")

    assert await migrating == AFTER
    await holder.close()
