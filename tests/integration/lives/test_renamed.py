"""A management cluster that is called otherwise on the same database drives nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final, LiteralString

import aiohttp
import asyncpg
import pytest

from dev.controlplane import ControlPlane
from dev.process import ProcessError
from reconciler.commands.store import EXIT_SETTINGS
from tests.fakes.databases import empty_database
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents
from tests.integration.load.stage import Broker, cluster_settings, furnished

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SLUG: Final = "PLEXSPHERE_MANAGEMENT_CLUSTER"
SLUGS: Final[LiteralString] = "SELECT slug FROM plexsphere.management_clusters"


@pytest.fixture
def dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


async def _slugs(dsn: str) -> list[str]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row["slug"] for row in await connection.fetch(SLUGS)]
    finally:
        await connection.close()


async def test_a_cluster_under_another_name_is_refused_at_the_start(
    control_plane: ControlPlane, tmp_path: Path, dsn: str
) -> None:
    settings = {**cluster_settings(control_plane), "PLEXSPHERE_DSN": dsn}
    broker = Broker(tmp_path / "local", settings)
    renamed = Broker(tmp_path / "renamed", {**settings, SLUG: "eu-1"})
    async with (
        furnished(control_plane, broker) as stage,
        aiohttp.ClientSession(broker.node_url) as session,
    ):
        life = await Life.begun(stage, "named-for-life")
        await life.registers(Agents(session))
        before = life.status
        await asyncio.to_thread(broker.stop)

        with pytest.raises(ProcessError) as refused:
            await asyncio.to_thread(renamed.start)

        await asyncio.to_thread(broker.start)
        after = life.status
        await life.ends()
        await asyncio.to_thread(renamed.stop)

    assert f"ended with status {EXIT_SETTINGS};" in str(refused.value)
    assert (
        f"broker: {SLUG}: records here live on management cluster 'local'; the name cannot change"
    ) in str(refused.value)
    assert after == before
    assert await _slugs(dsn) == ["local"]
