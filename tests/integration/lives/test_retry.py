"""A failed resource starts over when `spec.retry` is raised, on the real store and API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, LiteralString

import aiohttp
import asyncpg
import pytest

from dev.controlplane import ControlPlane
from tests.fakes.databases import empty_database
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents
from tests.integration.load.stage import Broker, cluster_settings, furnished
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

TOLD: Final[LiteralString] = """
SELECT event_type FROM plexsphere.outbox_events
WHERE aggregate_type = 'ProvisionedResource' ORDER BY aggregate_id, aggregate_sequence
"""
AUDITED: Final[LiteralString] = "SELECT action, reason FROM plexsphere.broker_audit"
TOKENS: Final[LiteralString] = "SELECT count(*) FROM plexsphere.bootstrap_tokens"

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture
def dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


async def test_a_failed_resource_starts_over_with_the_same_id_substrate_and_token(
    control_plane: ControlPlane, tmp_path: Path, dsn: str
) -> None:
    broker = Broker(tmp_path / "broker", {**cluster_settings(control_plane), "PLEXSPHERE_DSN": dsn})
    async with (
        furnished(control_plane, broker) as stage,
        aiohttp.ClientSession(broker.node_url) as session,
    ):
        life = await Life.begun(stage, "web-1")
        await life.observes(failed=True, reason="quota exceeded", ready=False)
        await life.until_phase("Failed")
        # The provider is well again, which by itself changes nothing.
        await life.observes(failed=False, reason=None, ready=True)
        await life.retries()
        made(Kind.RETRY)
        await life.registers(Agents(session))
        handle = life.status["xrName"]
        broker.assert_running()
    connection = await asyncpg.connect(dsn)
    told = [row["event_type"] for row in await connection.fetch(TOLD)]
    tokens = await connection.fetchval(TOKENS)
    audited = [tuple(row) for row in await connection.fetch(AUDITED)]
    await connection.close()

    assert told == [
        f"broker.ProvisionedResource{step}" for step in ("Requested", "Failed", "Ready")
    ]
    assert audited == [("retry", "spec.retry was raised from 1 to 2 in phase Failed")]
    assert handle == life.handle
    assert tokens == 1
