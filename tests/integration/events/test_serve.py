"""What two `broker serve` tell a consumer of one machine's life."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest

from dev.controlplane import ControlPlane
from reconciler.domain.events.catalogue import CATALOGUE
from tests.contract.cluster_worlds import shared_control_plane
from tests.fakes.consumer import Consumer, consuming
from tests.integration.load.stage import STEP_S
from tests.integration.replicas.pair import pair

pytestmark = pytest.mark.integration

LIFE = [
    "broker.ProvisionedResourceRequested",
    "broker.ProvisionedResourceReady",
]


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    return shared_control_plane(request.config, tmp_path_factory)


def _by_aggregate(consumer: Consumer) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in consumer.events():
        found[event["partitionkey"]].append(event)
    return found


@pytest.mark.timeout(600)
async def test_a_machines_life_is_told_whole_and_in_order(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with (
        consuming() as (consumer, url),
        pair(control_plane, tmp_path, PLEXSPHERE_EVENTS_SINK=url) as both,
    ):
        _, standby = await both.roles()
        record = await both.live("web-1", standby)
        resource = both.stage.status(record)["provisionedResourceID"]
        async with asyncio.timeout(STEP_S):
            while len(_by_aggregate(consumer)[resource]) < len(LIFE):  # noqa: ASYNC110 - HTTP
                await asyncio.sleep(0.05)
        shown = [await _metrics(each.broker.operator_url) for each in both.replicas]

    told = _by_aggregate(consumer)
    assert [event["type"] for event in told[resource]] == LIFE
    assert {event["subject"] for event in told[resource]} == {f"pr-{resource}"}
    for events in told.values():
        assert [int(event["sequence"]) for event in events] == list(range(1, len(events) + 1))
        for event in events:
            schema = CATALOGUE[event["type"]].schema()
            assert event["dataschema"] == schema["$id"]
            jsonschema.Draft202012Validator(schema).validate(event["data"])
    assert {event["type"] for events in told.values() for event in events} >= {
        *LIFE,
        "identity.BootstrapTokenIssued",
        "identity.NodeRegistered",
        "managementfleet.ManagementClusterRegistered",
        "managementfleet.ProjectClusterAssigned",
        "managementfleet.ProjectNamespaceReady",
    }
    assert all("plexsphere_events_waiting" in text for text in shown)
    assert any('plexsphere_events_published_total{type="' in text for text in shown)


async def _metrics(url: str) -> str:
    async with aiohttp.ClientSession(url) as session, session.get("/metrics") as answer:
        return await answer.text()
