"""`broker thaw` on a real database: its word counts for its cluster, for a time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest
from click.testing import CliRunner

from reconciler.adapters.postgres.aggregates.counts import PostgresCensus
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.domain.aggregate import ids
from reconciler.main import cli
from tests.fakes.databases import migrated_database

pytestmark = pytest.mark.integration

CLUSTER = ids.management_cluster_id("eu-1")
MADE = "INSERT INTO plexsphere.management_clusters (id, name, slug) VALUES ($1, 'EU 1', 'eu-1')"
WAS = "UPDATE plexsphere.driver_thaws SET thawed_at = thawed_at - interval '11 minutes'"


async def _ask(dsn: str, *statements: tuple[str, tuple[object, ...]]) -> bool:
    pool = await open_pool(dsn)
    try:
        for statement, values in statements:
            await pool.execute(statement, *values)
        return await PostgresCensus(FencedStore(pool), CLUSTER).thawed(
            CLUSTER, within=timedelta(minutes=10)
        )
    finally:
        await pool.close()


def _thaw(dsn: str, *flags: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["thaw", *flags], env={"PLEXSPHERE_DSN": dsn})
    return result.exit_code, result.output


def test_a_word_counts_for_its_cluster_and_ends() -> None:
    with migrated_database() as dsn:
        assert not asyncio.run(_ask(dsn, (MADE, (CLUSTER,))))

        status, text = _thaw(dsn, "--management-cluster", "eu-1", "--reason", "we moved away")

        assert (status, text) == (
            0,
            "observed state of management cluster 'eu-1' is accepted for ten minutes\n",
        )
        assert asyncio.run(_ask(dsn))
        assert not asyncio.run(_ask(dsn, (WAS, ())))


def test_who_said_it_and_why_is_kept() -> None:
    async def kept(dsn: str) -> asyncpg.Record | None:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchrow("SELECT reason, actor FROM plexsphere.driver_thaws")
        finally:
            await connection.close()

    with migrated_database() as dsn:
        asyncio.run(_ask(dsn, (MADE, (CLUSTER,))))
        _thaw(dsn, "--management-cluster", "eu-1", "--reason", " ticket 42 ")
        row = asyncio.run(kept(dsn))

    assert row is not None
    assert row["reason"] == "ticket 42"
    assert row["actor"]


def test_an_unknown_cluster_is_refused() -> None:
    with migrated_database() as dsn:
        status, text = _thaw(dsn, "--management-cluster", "nowhere", "--reason", "x")

    assert status == 1
    assert text == "broker: cannot thaw: management cluster 'nowhere' is not stored\n"


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 513])
def test_a_reason_must_be_one_line(reason: str) -> None:
    status, text = _thaw("postgresql:///nowhere", "--reason", reason)

    assert status == 2
    assert "one printable line" in text
