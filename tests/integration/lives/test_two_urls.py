"""A changed base URL and image reach new nodes only, and each record says which are its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from dev.controlplane import ControlPlane
from tests.fakes.databases import empty_database
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents
from tests.integration.load.stage import Broker, cluster_settings, furnished

PREFIX: Final = "PLEXSPHERE_PROVISIONING_BROKER_"
FIRST: Final = ("https://first.example.org", "registry.example.org/plexd:v1")
SECOND: Final = ("https://second.example.org", "registry.example.org/plexd:v2")

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture
def dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


def _broker(folder: Path, settings: dict[str, str], rendered: tuple[str, str]) -> Broker:
    url, image = rendered
    own = {
        f"{PREFIX}ENROL_BASE_URL": url,
        f"{PREFIX}PLEXD_IMAGE": image,
        f"{PREFIX}RECONCILE_INTERVAL": "500ms",
    }
    return Broker(folder, {**settings, **own})


def _rendered_with(status: dict[str, Any]) -> tuple[str, str]:
    """Return what the function renders this record's document with, now and later."""
    enrolment = status.get("enrolment") or {}
    return enrolment.get("baseURL", ""), enrolment.get("plexdImage", "")


async def test_a_changed_url_and_image_reach_new_nodes_only(
    control_plane: ControlPlane, tmp_path: Path, dsn: str
) -> None:
    settings = {**cluster_settings(control_plane), "PLEXSPHERE_DSN": dsn}
    first = _broker(tmp_path / "first", settings, FIRST)
    second = _broker(tmp_path / "second", settings, SECOND)
    async with (
        furnished(control_plane, first) as stage,
        aiohttp.ClientSession(first.node_url) as at_first,
        aiohttp.ClientSession(second.node_url) as at_second,
    ):
        booted = await Life.begun(stage, "booted")
        await booted.registers(Agents(at_first))
        booting = await Life.begun(stage, "booting")
        declared = await stage.declare("declared")
        await stage.token(declared)
        before = {life.record: _rendered_with(life.status) for life in (booted, booting)}
        before[declared] = _rendered_with(stage.status(declared))

        await asyncio.to_thread(first.stop)
        await asyncio.to_thread(second.start)
        fresh = await Life.begun(stage, "fresh")
        # It boots with the first URL in its document, and reaches us there.
        await booting.registers(Agents(at_second))
        await stage.until(
            declared, lambda status: _rendered_with(status) == SECOND, "the second URL"
        )
        await booted.loses_status()
        await stage.until(
            booted.record, lambda status: status.get("phase") == "Ready", "its status again"
        )
        after = {life.record: _rendered_with(life.status) for life in (booted, booting, fresh)}
        second.assert_running()
        await asyncio.to_thread(second.stop)

    assert set(before.values()) == {FIRST}
    assert after == {booted.record: FIRST, booting.record: FIRST, fresh.record: SECOND}
