"""No node stays behind, whatever ends meanwhile.

A real `broker serve`, killed twice, over a real API server and a Postgres that crashes once;
three in ten machines boot late, one in ten never gets its first reply. 40 machines by
default; `HYPOTHESIS_PROFILE=long` takes 200.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, LiteralString

import aiohttp
import pytest

from dev.controlplane import ControlPlane
from dev.postgres import Postgres
from function.contract.conditions import ConditionType, is_true
from tests.integration.load.agents import LONG, Agents, Reply, eventually, until
from tests.integration.load.ledger import (
    assert_events_once,
    assert_one_node_each,
    execute,
    outage,
    own_server,
)
from tests.integration.load.stage import (
    Broker,
    Stage,
    cluster_settings,
    furnished,
    stalled,
)
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

MACHINES: Final = 200 if LONG else 40
STEP_S: Final = 300.0 if LONG else 60.0
SWEEP_S: Final = MACHINES // 20
"""Between two sweeps, which renew windows; one takes less."""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200 if LONG else 300)]

EARLY: Final = 1
"""The last digit of machines that come before their substrate is reported ready."""
OVERDUE: Final = 9
"""Of those that come after the registration timeout, too."""

PASSED: Final[LiteralString] = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - $2::text::interval, expires_at = expires_at - $2::text::interval
WHERE consumed_at IS NULL AND ($1 = '' OR provisioned_resource_id =
    (SELECT id FROM plexsphere.provisioned_resources WHERE xr_name = $1))
"""
"""Time passes for the tokens of one resource, or of all."""

WAITED: Final[LiteralString] = """
UPDATE plexsphere.provisioned_resources
SET enrolling_since = enrolling_since - $2::text::interval WHERE xr_name = $1
"""
RENEWED: Final[LiteralString] = """
SELECT expires_at > now() + $2::text::interval FROM plexsphere.bootstrap_tokens AS token
JOIN plexsphere.provisioned_resources AS resource ON resource.id = token.provisioned_resource_id
WHERE xr_name = $1 ORDER BY token.generation DESC LIMIT 1
"""
OUTLIVED: Final[LiteralString] = """
SELECT count(*) FROM plexsphere.bootstrap_tokens WHERE consumed_at > issued_at + interval '1 hour'
"""


@dataclass
class Gate:
    """Where machines wait to boot until something is away.

    Attributes:
        waiting: How many came so far.
    """

    waiting: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def passed(self) -> None:
        """Return once it is open."""
        self.waiting += 1
        await self.opened.wait()


@dataclass
class Chaos:
    """One run: its parts, and what happened so far.

    Attributes:
        replies: By record.
        gone: Open once Postgres is away.
        killed: Open once the broker was killed the second time.
        database: Held by whoever of the test itself needs Postgres, or takes it away.
    """

    stage: Stage
    broker: Broker
    postgres: Postgres
    dsn: str
    agents: Agents
    replies: dict[str, Reply] = field(default_factory=dict)
    gone: Gate = field(default_factory=Gate)
    killed: Gate = field(default_factory=Gate)
    database: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def live(self, number: int) -> None:
        """Take one machine from its declaration to its registration."""
        stage = self.stage
        record = await stage.declare(f"node-{number:03}")
        token = await stage.token(record)
        await stage.compose(record)
        kind = number % 10
        lost = int(kind == (number // 10 + 7) % 10)
        if kind != EARLY:
            await stage.ready(record)
            await stage.until(
                record, lambda status: status.get("phase") == "Enrolling", "Enrolling"
            )
        match kind:
            case 4 | 5:
                await self.gone.passed()
            case 6:
                await self.killed.passed()
            case 7 | 8 | 9:
                await self._boot_late(record, overdue=kind == OVERDUE)
        body = self._body(record, token)
        self.replies[record] = await self.agents.register(body, replies_lost=lost)
        if kind == EARLY:
            await stage.ready(record)

    async def _boot_late(self, record: str, *, overdue: bool) -> None:
        """Come when the first window is long over; renewals must have kept the token alive."""
        handle = self.stage.status(record)["xrName"]
        for _ in range(2):
            await self._sql(PASSED, handle, "40 minutes")
            await eventually(
                lambda: self._sql(RENEWED, handle, "50 minutes"),
                timeout_s=STEP_S,
                what="a new window",
            )
        if overdue:
            await self._sql(WAITED, handle, "16 minutes")
            await self.stage.until(
                record, lambda status: stalled(status) == "RegistrationTimeout", "overdue"
            )

    async def _sql(self, statement: LiteralString, *arguments: str) -> object:
        async with self.database:
            return await execute(self.dsn, statement, *arguments)

    def _body(self, record: str, token: str) -> bytes:
        body = {
            "project_id": self.stage.project,
            "resource_handle": self.stage.status(record)["xrName"],
            "bootstrap_token": token,
            "nonce": secrets.token_hex(16),
            "public_key": base64.b64encode(secrets.token_bytes(32)).decode(),
        }
        return json.dumps(body).encode()

    async def disturb(self) -> None:
        """Kill the broker while it mints, crash Postgres, kill the broker as nodes come."""
        await _until(lambda: self.stage.tokens() >= MACHINES // 8, "an eighth of the tokens")
        await self._restart()
        await _until(lambda: len(self.replies) >= MACHINES // 4, "a quarter of the nodes")
        await _until(lambda: self.gone.waiting >= MACHINES // 20, "machines to boot meanwhile")
        async with self.database, outage(self.postgres, signal.SIGQUIT):
            self.gone.opened.set()
            refused = self.agents.told[503] + MACHINES // 10
            await _until(lambda: self.agents.told[503] >= refused, "refusals without Postgres")
        await _until(lambda: len(self.replies) >= MACHINES // 2, "half of the nodes")
        await _until(lambda: self.killed.waiting >= MACHINES // 20, "machines to boot meanwhile")
        await self._restart()

    async def _restart(self) -> None:
        await asyncio.to_thread(self.broker.kill)
        if self.gone.opened.is_set():
            self.killed.opened.set()
            cut = self.agents.told["cut"] + MACHINES // 20
            await _until(lambda: self.agents.told["cut"] >= cut, "refusals without a broker")
            made(Kind.NODES_CUT_OFF)
        # It was away for longer than the pause between two generations.
        await self._sql(PASSED, "", "31 seconds")
        await asyncio.to_thread(self.broker.start)


async def _until(fact: Callable[[], bool], what: str) -> None:
    await until(fact, timeout_s=STEP_S, what=what)


async def test_no_node_is_stuck_after_slow_boots_lost_replies_and_restarts(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with own_server(tmp_path / "postgres") as postgres:
        dsn = postgres.create_database("load")
        settings = {
            **cluster_settings(control_plane),
            "PLEXSPHERE_DSN": dsn,
            "PLEXSPHERE_PROVISIONING_BROKER_RECONCILE_INTERVAL": f"{SWEEP_S}s",
        }
        broker = Broker(tmp_path / "broker", settings)
        async with (
            furnished(control_plane, broker) as stage,
            aiohttp.ClientSession(broker.node_url) as session,
        ):
            agents = Agents(session)
            chaos = Chaos(stage, broker, postgres, dsn, agents)
            async with asyncio.TaskGroup() as group:
                group.create_task(chaos.disturb())
                for number in range(MACHINES):
                    group.create_task(chaos.live(number))
            for record, reply in chaos.replies.items():
                await stage.until(record, _is_ready(reply), "Ready")
            alive = [await agents.reports(reply) for reply in chaos.replies.values()]
            left = await stage.secrets()
            outlived = await execute(dsn, OUTLIVED)
            broker.assert_running()
        await assert_one_node_each(dsn, resources=MACHINES)
        await assert_events_once(dsn, resources=MACHINES)

    assert agents.faults == []
    assert len(chaos.replies) == MACHINES
    assert agents.told[201] == MACHINES
    assert agents.told["lost"] == MACHINES // 10
    assert agents.told[503] > 0
    assert agents.told["cut"] > 0
    assert outlived == MACHINES * 3 // 10
    assert all(alive)
    assert left == []


def _is_ready(reply: Reply) -> Callable[[dict[str, object]], bool]:
    """Tell of a status whether it shows the node of a reply, and nothing that is open."""

    def fits(status: dict[str, object]) -> bool:
        node, bootstrap = status.get("node") or {}, status.get("bootstrap") or {}
        assert isinstance(node, dict)
        assert isinstance(bootstrap, dict)
        return (
            status.get("phase") == "Ready"
            and node.get("id") == reply["node_id"]
            and bootstrap.get("state") == "Consumed"
            and is_true(status, ConditionType.NODE_REGISTERED)
            and stalled(status) is None
        )

    return fits
