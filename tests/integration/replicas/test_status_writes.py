"""Two replicas never write one status twice, and who stands by writes nothing at all.

The API server tells how often a status was written, and a watch what it said each time.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from dev.controlplane import ControlPlane
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.cluster import open_client
from tests.contract.cluster_worlds import RECORD
from tests.integration.lives.life import Life
from tests.integration.load.agents import LONG, Agents
from tests.integration.load.stage import Stage
from tests.integration.replicas.pair import Pair, pair
from tests.integration.replicas.writes import Write, writes

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

LIVES: Final = 24 if LONG else 8
"""Whole lives, half of them begun before another one leads."""

STATUS: Final = "provisioningrecords/status"

Said = Mapping[str, Sequence[str]]
"""Each status that a record had, one after the other, by its name."""


async def test_who_stands_by_writes_nothing_and_no_status_is_written_twice(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    log = _log(control_plane)
    async with pair(control_plane, tmp_path) as both, _heard(both.stage) as said:
        leader, follower = await both.roles()
        fence = await both.fence()
        early = await _begin(both, "early")
        handed_over = datetime.now(UTC)
        # It must pass on its wires while it ends.
        ending = asyncio.create_task(asyncio.to_thread(leader.broker.stop))
        await both.led_by(follower, after=fence)
        await ending
        ended = datetime.now(UTC)
        late = await _begin(both, "late", only_with=follower.broker.node_url)
        await asyncio.gather(*(life.ends() for life in (*early, *late)))
        told = writes(log, namespace=both.stage.namespace)

    by_leader = [each for each in told if each.credential == leader.credential]
    by_follower = [each for each in told if each.credential == follower.credential]
    assert [each for each in by_follower if each.at < handed_over] == []
    assert [each for each in by_leader if each.at > ended] == []
    assert min(len(by_leader), len(by_follower)) > LIVES
    _assert_each_once(told, said)


async def test_nor_is_it_while_two_believe_that_they_lead(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    log = _log(control_plane)
    async with (
        pair(control_plane, tmp_path, PLEXSPHERE_LEASE_TTL="4s") as both,
        _heard(both.stage) as said,
    ):
        await both.roles()
        beginning = asyncio.create_task(_begin(both, "early"))
        await both.steal()
        lives = await beginning
        ending = [asyncio.create_task(life.ends()) for life in lives]
        await both.steal()
        await asyncio.gather(*ending)
        told = writes(log, namespace=both.stage.namespace)

    written = [each for each in told if each.resource == STATUS]
    credentials = {replica.credential for replica in both.replicas}
    assert {each.credential for each in written} <= credentials
    _assert_each_once(told, said)


def _log(plane: ControlPlane) -> Path:
    if plane.audit_log is None:
        pytest.skip("nobody tells us who wrote to another's API server")
    return plane.audit_log


async def _begin(both: Pair, name: str, *, only_with: str | None = None) -> list[Life]:
    """Take half of the lives to Ready, registering with both replicas or with one."""

    async def one(number: int) -> Life:
        life = await Life.begun(both.stage, f"{name}-{number}")
        url = only_with or both.replicas[number % 2].broker.node_url
        async with aiohttp.ClientSession(url) as session:
            await life.registers(Agents(session))
        return life

    return list(await asyncio.gather(*map(one, range(LIVES // 2))))


@asynccontextmanager
async def _heard(stage: Stage) -> AsyncIterator[Said]:
    """Watch the records of a stage; each status that one has is heard, also a short-lived one."""
    said: dict[str, list[str]] = {}

    def hear(key: tuple[str, str]) -> None:
        status = (records.get(key) or {}).get("status")
        heard = said.setdefault(key[1], [])
        text = json.dumps(status, sort_keys=True)
        if status is not None and heard[-1:] != [text]:
            heard.append(text)

    async with AsyncExitStack() as stack:
        client = await open_client(stage.plane.kubeconfig)
        stack.push_async_callback(client.close)
        group, _, plural = RECORD
        path = f"/apis/{group}/v1alpha1/namespaces/{stage.namespace}/{plural}"
        records = ObjectCache(client, path, on_change=hear)
        watching = asyncio.create_task(records.run())
        await records.wait_synced()
        yield said
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _assert_each_once(told: Sequence[Write], said: Said) -> None:
    """Assert that each write of a status said something that was not said before."""
    written = Counter(each.name for each in told if each.resource == STATUS)
    assert len(written) >= LIVES // 2
    assert written == {name: len(heard) for name, heard in said.items()}
    assert [name for name, heard in said.items() if len(set(heard)) != len(heard)] == []
