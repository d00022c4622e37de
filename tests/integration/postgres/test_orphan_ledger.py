"""How findings of leftovers are kept, and what the command prints of them."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from click.testing import CliRunner

from reconciler.adapters.postgres.aggregates.orphan_ledger import PostgresOrphanLedger
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.teardown.orphans import REMEDY, Orphan, OrphanFinding
from reconciler.main import cli
from tests.contract.worlds import World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

ORPHANS = [
    Orphan(finding=OrphanFinding.RECORD_MISSING, subject="pr-1", detail="record shop/web is gone"),
    Orphan(finding=OrphanFinding.NODE_OF_DELETED, subject="node n", detail="at 100.64.0.7"),
]


@pytest.fixture
def ledger(pool: asyncpg.Pool) -> PostgresOrphanLedger:
    return PostgresOrphanLedger(FencedStore(pool), samples.CLUSTER)


async def test_findings_are_kept_from_the_first_sweep_to_the_last(
    world: World, ledger: PostgresOrphanLedger, pool: asyncpg.Pool
) -> None:
    first = await ledger.settle(set(ORPHANS))
    again = await ledger.settle(set(ORPHANS))
    await ledger.settle(set(ORPHANS[1:]))
    anew = await ledger.settle(set(ORPHANS))

    assert (set(first), list(again), list(anew)) == (set(ORPHANS), [], ORPHANS[:1])
    rows = await pool.fetch(
        "SELECT subject, gone_at IS NULL AS stands FROM plexsphere.orphans ORDER BY found_at"
    )
    told = sorted((row["subject"], row["stands"]) for row in rows)
    assert told == [("node n", True), ("pr-1", False), ("pr-1", True)]


async def test_what_stands_is_not_written(
    world: World, ledger: PostgresOrphanLedger, pool: asyncpg.Pool
) -> None:
    await ledger.settle(set(ORPHANS))
    before = await pool.fetch("SELECT xmin, * FROM plexsphere.orphans ORDER BY subject")

    await ledger.settle(set(ORPHANS))

    assert await pool.fetch("SELECT xmin, * FROM plexsphere.orphans ORDER BY subject") == before


async def test_the_command_prints_what_stands_and_what_can_be_done(
    world: World, ledger: PostgresOrphanLedger, dsn: str
) -> None:
    quiet = await _printed(dsn)
    await ledger.settle(set(ORPHANS))

    told = await _printed(dsn)

    assert quiet == "no orphans found\n"
    for orphan in ORPHANS:
        assert f"{orphan.finding.value}  {orphan.subject}\n" in told
        assert orphan.detail in told
        assert REMEDY[orphan.finding] in told


async def _printed(dsn: str) -> str:
    environ = {"PLEXSPHERE_DSN": dsn}
    result = await asyncio.to_thread(CliRunner().invoke, cli, ["orphans"], env=environ)
    assert result.exit_code == 0, result.output
    return result.output
