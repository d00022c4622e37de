"""Fault 24 on a real etcd: a management cluster comes back from an older backup.

What was declared since is gone from it, what was deleted since is back; the broker's own store
knows better. docs/operations/freeze.md says what comes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString

import aiohttp
import asyncpg
import pytest
from click.testing import CliRunner

from dev.controlplane import ControlPlane
from function.contract.conditions import Reason
from reconciler.domain.guard.circuit_breaker import BreakerCause
from reconciler.main import cli
from tests.contract.cluster_worlds import furnish
from tests.e2e.deploy.identity import MASTERS, Caller
from tests.fakes.databases import migrated_database
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents, eventually
from tests.integration.load.ledger import execute
from tests.integration.load.stage import (
    STEP_S,
    Broker,
    Stage,
    cluster_settings,
    furnished,
    stalled,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

LIVED_ON: Final = 200
"""Writes between backup and restore that are nobody's: more than an API server makes when it
starts, so that versions have gone back whenever somebody looks."""

THAW: Final = ("thaw", "--reason", "OPS-24: restored; what Git knows is applied again")
IS_DELETED: Final[LiteralString] = """
SELECT status = 'Deleted' FROM plexsphere.provisioned_resources WHERE xr_name = $1
"""
ROWS: Final[LiteralString] = """
SELECT resource.id::text AS id, owner_name AS name,
       node.id IS NOT NULL AND node.deregistered_at IS NULL AS in_mesh,
       (SELECT count(*)::int FROM plexsphere.bootstrap_tokens AS token
        WHERE token.provisioned_resource_id = resource.id) AS tokens
FROM plexsphere.provisioned_resources AS resource
LEFT JOIN plexsphere.nodes AS node ON node.provisioned_resource_id = resource.id
ORDER BY resource.created_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A control plane of the test's own, and a broker that may take no notice of its end."""

    plane: ControlPlane
    stage: Stage
    broker: Broker
    dsn: str

    async def born(self, name: str) -> Life:
        """Take a machine to Ready."""
        life = await Life.begun(self.stage, name)
        async with aiohttp.ClientSession(self.broker.node_url) as session:
            await life.registers(Agents(session))
        return life

    async def rows(self) -> list[dict[str, Any]]:
        """Return what the store says, oldest first."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return [dict(row) for row in await connection.fetch(ROWS)]
        finally:
            await connection.close()

    async def frozen(self) -> set[str]:
        """Return for what causes the broker is frozen."""
        async with (
            aiohttp.ClientSession(self.broker.operator_url) as session,
            session.get("/metrics") as response,
        ):
            lines = (await response.text()).splitlines()
        return {
            line.split('"')[1]
            for line in lines
            if line.startswith("plexsphere_frozen{") and line.endswith(" 1.0")
        }


@asynccontextmanager
async def _ground(folder: Path) -> AsyncIterator[Ground]:
    async with AsyncExitStack() as stack:
        plane = ControlPlane(folder / "plane")
        await asyncio.to_thread(plane.start)
        stack.push_async_callback(asyncio.to_thread, plane.stop)
        await asyncio.to_thread(furnish, plane)
        dsn = stack.enter_context(migrated_database())
        broker = Broker(folder / "broker", {**cluster_settings(plane), "PLEXSPHERE_DSN": dsn})
        stage = await stack.enter_async_context(furnished(plane, broker))
        yield Ground(plane=plane, stage=stage, broker=broker, dsn=dsn)


async def test_fault_24_a_cluster_that_is_restored_from_an_old_backup_loses_no_node(
    tmp_path: Path,
) -> None:
    async with _ground(tmp_path) as ground:
        steady, ended = await asyncio.gather(*(ground.born(name) for name in ("steady", "ended")))
        await asyncio.to_thread(ground.plane.back_up, tmp_path / "copy")
        await ended.ends()
        late, lost = await asyncio.gather(*(ground.born(name) for name in ("late", "lost")))
        await asyncio.to_thread(_live_on, ground)
        before = await ground.rows()

        await asyncio.to_thread(ground.plane.restore, tmp_path / "copy")
        await eventually(ground.frozen, timeout_s=STEP_S, what="a freeze")
        causes = await ground.frozen()
        # As Git does, which knows what the backup does not.
        await ground.stage.declare(late.name)
        await ground.stage.until(late.record, _is_lost, "its aggregate again")
        await ground.stage.until(
            ended.record, lambda status: status.get("xrName") != ended.handle, "another aggregate"
        )
        frozen = await ground.rows()
        said = CliRunner(env={"PLEXSPHERE_DSN": ground.dsn})
        thawed = await asyncio.to_thread(said.invoke, cli, THAW)
        await eventually(
            lambda: execute(ground.dsn, IS_DELETED, lost.handle), timeout_s=STEP_S, what="its end"
        )
        # As the function does, once it is called with the other name.
        await ended.observes(exists=False, ready=False, bootstrapGeneration=None)
        await ground.stage.token(ended.record)
        after = await ground.rows()
        async with aiohttp.ClientSession(ground.broker.node_url) as session:
            reports = [await Agents(session).reports(life.reply) for life in (steady, late)]

    assert BreakerCause.WENT_BACK in causes
    kept = [("steady", True, 1), ("ended", False, 1), ("late", True, 1)]
    assert _told(before) == sorted([*kept, ("lost", True, 1)])
    assert _told(frozen) == sorted([*kept, ("lost", True, 1), ("ended", False, 0)])
    assert thawed.exit_code == 0
    assert _told(after) == sorted([*kept, ("lost", False, 1), ("ended", False, 1)])
    assert [row["id"] for row in after[:4]] == [row["id"] for row in before]
    assert reports == [True, True]


def _is_lost(status: Mapping[str, Any]) -> bool:
    return stalled(dict(status)) == Reason.SUBSTRATE_LOST


def _told(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, bool, int]]:
    return sorted((row["name"], row["in_mesh"], row["tokens"]) for row in rows)


def _live_on(ground: Ground) -> None:
    path = f"/api/v1/namespaces/{ground.stage.namespace}"
    admin = Caller(ground.plane.kubeconfig).as_user("tests", MASTERS)
    for day in range(LIVED_ON):
        answer = admin.patch(path, {"metadata": {"annotations": {"tests/day": str(day)}}})
        assert answer.ok, answer.message
