"""Many tokens, two machines for each, over real HTTP and a real database.

500 tokens by default; `HYPOTHESIS_PROFILE=long` takes the 10,000 of the issue.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import aiohttp
import asyncpg
import pytest

from dev import registrations
from dev.registrations import Machine
from reconciler.adapters.http.listener import Address, listening
from reconciler.adapters.http.node_app import node_app
from tests.contract.worlds import Unlimited, postgres_world
from tests.fakes.databases import migrated_database
from tests.integration.load.agents import LONG

TOKENS: Final = 10_000 if LONG else 500
PROJECT_TOKENS: Final = 50
"""Nodes of one Project: a reply lists the others."""
IN_FLIGHT: Final = 32
"""Requests at once: more than the pool has connections, so that some wait for one."""
DEADLINE_S: Final = 1_500 if LONG else 120

pytestmark = [pytest.mark.integration, pytest.mark.timeout(DEADLINE_S + 60)]

LOSER: Final = (403, "token_consumed")


async def _ask(session: aiohttp.ClientSession, body: bytes) -> tuple[int, str]:
    async with session.post("/v1/register", data=body) as response:
        answer = await response.json(content_type=None)
        return response.status, answer.get("code", "")


async def _race(session: aiohttp.ClientSession, machines: list[Machine]) -> list[tuple[int, str]]:
    answers: list[tuple[int, str]] = []
    left = iter(machines)

    async def pair() -> None:
        for machine in left:
            bodies = (machine.body(), machine.body())
            found = await asyncio.gather(*(_ask(session, body) for body in bodies))
            answers.extend(found)

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT // 2):
            group.create_task(pair())
    return answers


async def _count(dsn: str, what: str) -> int:
    source = what if what.startswith("(") else f"plexsphere.{what}"
    connection = await asyncpg.connect(dsn)
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM {source}"))  # noqa: S608 - ours
    finally:
        await connection.close()


COUNTED: Final = (
    "bootstrap_tokens WHERE consumed_at IS NOT NULL",
    "nodes WHERE deregistered_at IS NULL",
    "registration_nonces",
    "outbox_events WHERE event_type = 'identity.NodeRegistered'",
    "enrolment_audit WHERE detail = 'other_key' AND node_id IS NOT NULL",
    "enrolment_audit",
    "(SELECT DISTINCT mesh_ip FROM plexsphere.nodes) AS addresses",
    "(SELECT DISTINCT bootstrap_token_id FROM plexsphere.nodes) AS spent",
)
"""What there must be as many of as tokens, of the schema."""


async def test_every_token_has_one_winner_and_one_audited_loser() -> None:
    with migrated_database() as dsn:
        projects = TOKENS // PROJECT_TOKENS
        machines = await registrations.seed(dsn, count=TOKENS, projects=projects)
        async with postgres_world(dsn) as world:
            app = node_app(world.enrolment, address_budget=Unlimited())
            async with (
                listening(app, Address(host="127.0.0.1", port=0), tls=None) as url,
                aiohttp.ClientSession(url, headers={"Content-Type": "application/json"}) as session,
            ):
                answers = await _race(session, machines)
        found = {what: await _count(dsn, what) for what in COUNTED}

    assert Counter(answers) == {(201, ""): TOKENS, LOSER: TOKENS}
    assert found == dict.fromkeys(COUNTED, TOKENS)
