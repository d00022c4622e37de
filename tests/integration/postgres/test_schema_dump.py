"""The checked-in dump is what the migrations make, on whichever way."""

from __future__ import annotations

import asyncpg
import pytest

from dev.schema_dump import FILE, dump
from reconciler.adapters.postgres.connection import migrate
from tests.fakes.databases import server

HINT = "run `make generate`"


@pytest.fixture(autouse=True)
def own_server() -> None:
    if not server().is_ours:
        pytest.skip("another release of Postgres may dump the same schema differently")


pytestmark = pytest.mark.integration


async def test_up_gives_the_checked_in_dump(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn)

    assert dump(empty_dsn) == FILE.read_text(encoding="utf-8"), HINT


async def test_up_down_and_up_again_gives_the_checked_in_dump(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn)
    await migrate.downgrade(empty_dsn, "base")
    await migrate.migrate(empty_dsn)

    assert dump(empty_dsn) == FILE.read_text(encoding="utf-8"), HINT


async def test_a_step_back_and_up_again_gives_the_checked_in_dump(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn)
    await migrate.downgrade(empty_dsn, "0027")
    await migrate.migrate(empty_dsn)

    assert dump(empty_dsn) == FILE.read_text(encoding="utf-8"), HINT


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("DROP TRIGGER broker_audit_append_only ON plexsphere.broker_audit", "TRIGGER"),
        ("DROP FUNCTION plexsphere.take_out_node CASCADE", "take_out_node"),
        ("ALTER FUNCTION plexsphere.peers_of RESET enable_seqscan", "enable_seqscan"),
        ("DROP INDEX plexsphere.nodes_mesh_ip_live", "nodes_mesh_ip_live"),
    ],
)
async def test_a_dump_shows_what_a_catalogue_of_columns_does_not(
    dsn: str, statement: str, shown: str
) -> None:
    before = dump(dsn)
    connection = await asyncpg.connect(dsn)

    await connection.execute(statement)
    await connection.close()

    assert dump(dsn).count(shown) < before.count(shown)
