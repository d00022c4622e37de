"""Postgres goes away and comes back while machines register."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from dev import registrations
from reconciler.adapters.http.listener import Address, listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.postgres.connection import migrate
from tests.contract.worlds import postgres_world
from tests.fakes.budget import unlimited
from tests.integration.load.agents import Agents, Reply, until
from tests.integration.load.ledger import assert_one_node_each, outage, own_server
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

TOKENS: Final = 240
PROJECTS: Final = 6
IN_FLIGHT: Final = 32
"""Registrations at once: more than the pool has connections."""
REFUSED_MIN: Final = 2 * IN_FLIGHT
"""How many must have been told to wait before Postgres may come back: everybody, twice."""
STEP_S: Final = 60.0

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def _all(agents: Agents, bodies: list[bytes], found: list[Reply]) -> None:
    left = iter(bodies)

    async def one_after_the_other() -> None:
        for body in left:
            reply = await agents.register(body)
            found.append(reply)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(one_after_the_other())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["shutdown", "crash"])
async def test_a_restart_of_postgres_in_mid_load_costs_no_token_no_node_and_no_event(
    how: signal.Signals, tmp_path: Path
) -> None:
    found: list[Reply] = []
    with own_server(tmp_path) as postgres:
        dsn = postgres.create_database("load")
        await migrate.migrate(dsn)
        machines = await registrations.seed(dsn, count=TOKENS, projects=PROJECTS)
        async with postgres_world(dsn) as world:
            app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
            async with (
                listening(app, Address(host="127.0.0.1", port=0), tls=None) as url,
                aiohttp.ClientSession(url) as session,
            ):
                agents = Agents(session)
                bodies = [machine.body() for machine in machines]
                async with asyncio.TaskGroup() as group:
                    group.create_task(_all(agents, bodies, found))
                    await until(lambda: len(found) >= TOKENS // 4, timeout_s=STEP_S, what="nodes")
                    async with outage(postgres, how):
                        made(Kind.POSTGRES_AWAY)
                        before = len(found)
                        await until(
                            lambda: agents.told[503] >= REFUSED_MIN, timeout_s=STEP_S, what="503"
                        )
                alive = [await agents.reports(reply) for reply in found]
        await assert_one_node_each(dsn, resources=TOKENS)

    assert before < TOKENS
    assert agents.faults == []
    assert set(agents.told) == {201, 503}
    assert len(found) == TOKENS
    assert len({reply["node_id"] for reply in found}) == TOKENS
    assert all(alive)
