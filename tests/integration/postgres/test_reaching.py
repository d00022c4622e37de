"""Why a real server lets nobody in, in one sentence that names the knob and no value."""

from __future__ import annotations

from urllib.parse import urlsplit

import asyncpg
import pytest

from reconciler.adapters.postgres.connection.migrate import migrate
from reconciler.adapters.postgres.connection.pool import StoreError, open_pool, reaching

pytestmark = pytest.mark.integration

PASSWORD = "hunter2"


async def _refused(dsn: str) -> str:
    with pytest.raises(StoreError) as by_migrate:
        await migrate(dsn)
    with pytest.raises(StoreError) as by_pool, reaching():
        await open_pool(dsn)
    assert str(by_migrate.value) == str(by_pool.value)
    assert PASSWORD not in str(by_pool.value)
    return str(by_pool.value)


def _as(dsn: str, *, user: str) -> str:
    parts = urlsplit(dsn)
    return parts._replace(netloc=f"{user}:{PASSWORD}@{parts.hostname}:{parts.port}").geturl()


async def test_a_database_that_is_not_there_is_told(empty_dsn: str) -> None:
    parts = urlsplit(empty_dsn)

    line = await _refused(parts._replace(path="/nowhere").geturl())

    assert line.endswith("the database that PLEXSPHERE_DSN names does not exist")


async def test_a_user_that_is_not_let_in_is_told(empty_dsn: str) -> None:
    line = await _refused(_as(empty_dsn, user="nobody_at_all"))

    assert "the user or the password of PLEXSPHERE_DSN" in line


async def test_a_role_that_may_not_connect_is_told_by_its_code(empty_dsn: str) -> None:
    database = urlsplit(empty_dsn).path.removeprefix("/")
    connection = await asyncpg.connect(empty_dsn)
    await connection.execute(f'ALTER DATABASE "{database}" WITH CONNECTION LIMIT 0')
    await connection.execute(f"CREATE ROLE limited_{database} LOGIN PASSWORD '{PASSWORD}'")
    try:
        line = await _refused(_as(empty_dsn, user=f"limited_{database}"))
    finally:
        await connection.execute(f"DROP ROLE limited_{database}")
        await connection.close()

    assert line.endswith("the server of PLEXSPHERE_DSN answers 53300")
