"""The program of the version before, on this version's schema."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final, LiteralString

import aiohttp
import asyncpg
import pytest

from dev import version_before
from dev.controlplane import ControlPlane
from dev.process import ProcessError
from dev.stack import ROOT
from dev.version_before import VersionBefore
from reconciler.adapters.postgres.connection import migrate
from tests.fakes.databases import empty_database
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents
from tests.integration.load.stage import Broker, cluster_settings, furnished

GAPS: Final[LiteralString] = """
SELECT aggregate_id FROM plexsphere.outbox_events GROUP BY aggregate_id
HAVING count(*) <> max(aggregate_sequence) OR min(aggregate_sequence) <> 1
"""
TOLD: Final[LiteralString] = """
SELECT event_type FROM plexsphere.outbox_events
WHERE aggregate_type = 'ProvisionedResource' ORDER BY aggregate_id, aggregate_sequence
"""
LIFE: Final = [
    f"broker.ProvisionedResource{step}" for step in ("Requested", "Ready", "Deleting", "Deleted")
]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> VersionBefore:
    try:
        return version_before.unpack(ROOT, tmp_path_factory.mktemp("version-before"))
    except ProcessError as error:
        pytest.skip(str(error))


@pytest.fixture
def dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


async def test_f07_the_version_before_goes_on_while_the_schema_is_brought_up_beneath_it(
    control_plane: ControlPlane,
    tmp_path: Path,
    before: VersionBefore,
    dsn: str,
) -> None:
    settings = {**cluster_settings(control_plane), "PLEXSPHERE_DSN": dsn}
    old = Broker(tmp_path / "old", {**settings, "PYTHONPATH": str(before.folder)})
    new = Broker(tmp_path / "new", settings)
    async with (
        furnished(control_plane, old) as stage,
        aiohttp.ClientSession(old.node_url) as at_old,
        aiohttp.ClientSession(new.node_url) as at_new,
    ):
        assert await migrate.current(dsn) == before.revision
        begun_before = await Life.begun(stage, "begun-before")
        await migrate.migrate(dsn)
        old_agents = Agents(at_old)
        await begun_before.registers(old_agents)
        begun_after = await Life.begun(stage, "begun-after")
        await begun_after.registers(old_agents)
        await begun_before.ends()
        old.assert_running()
        await asyncio.to_thread(old.stop)

        await asyncio.to_thread(new.start)
        new_agents = Agents(at_new)
        is_known = await new_agents.reports(begun_after.reply)
        await begun_after.ends()
        new.assert_running()
        await asyncio.to_thread(new.stop)
    connection = await asyncpg.connect(dsn)
    gaps, told = await connection.fetch(GAPS), await connection.fetch(TOLD)
    await connection.close()

    assert is_known
    assert gaps == []
    assert [row["event_type"] for row in told] == [*LIFE, *LIFE]
