"""Databases of a test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from reconciler.adapters.postgres.connection.pool import open_pool
from tests.contract.worlds import World, postgres_world
from tests.fakes.databases import empty_database, migrated_database


@pytest.fixture
def empty_dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


@pytest.fixture
def dsn() -> Iterator[str]:
    with migrated_database() as dsn:
        yield dsn


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await open_pool(dsn)
    yield pool
    await pool.close()


@pytest.fixture
async def world(dsn: str) -> AsyncIterator[World]:
    async with postgres_world(dsn) as real:
        yield real
