"""Many tokens, two machines for each, over real HTTP and a real database.

500 tokens by default; `HYPOTHESIS_PROFILE=long` takes the 10,000 of the issue.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from typing import Final, NamedTuple
from uuid import UUID

import aiohttp
import asyncpg
import pytest

from dev import registrations
from dev.registrations import Machine
from reconciler.adapters.http.listener import Address, listening
from reconciler.adapters.http.node.node_app import node_app
from tests.contract.worlds import postgres_world
from tests.fakes.budget import unlimited
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
REPLACED: Final = (401, "nsk_revoked")
IDENTICAL: Final = 12
"""Machines whose request is sent thrice at once; each of the three answers arrives for four."""


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


class Answered(NamedTuple):
    """A registration's answer, and the bearer that it gives; empty where it gives none."""

    status: int
    node: str
    bearer: str


async def _answered(session: aiohttp.ClientSession, body: bytes) -> Answered:
    async with session.post("/v1/register", data=body) as response:
        answer = await response.json(content_type=None)
    if response.status != 201:
        return Answered(response.status, "", "")
    raw = UUID(answer["node_id"]).bytes + base64.b64decode(answer["nsk"])
    bearer = f"nsk_load_{base64.urlsafe_b64encode(raw).decode()}"
    return Answered(response.status, answer["node_id"], bearer)


async def _state(session: aiohttp.ClientSession, answered: Answered) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {answered.bearer}"}
    async with session.get(f"/v1/nodes/{answered.node}/state", headers=headers) as response:
        answer = await response.json(content_type=None)
        return response.status, answer.get("code", "")


async def test_three_identical_registrations_at_once_are_one_node_and_any_answer_is_good() -> None:
    with migrated_database() as dsn:
        machines = await registrations.seed(dsn, count=IDENTICAL, projects=1)
        bodies = [machine.body() for machine in machines]
        async with postgres_world(dsn) as world:
            app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
            async with (
                listening(app, Address(host="127.0.0.1", port=0), tls=None) as url,
                aiohttp.ClientSession(url, headers={"Content-Type": "application/json"}) as session,
            ):
                for number, body in enumerate(bodies):
                    answers = await asyncio.gather(*(_answered(session, body) for _ in range(3)))
                    assert [answer.status for answer in answers] == [201] * 3
                    assert len({answer.node for answer in answers}) == 1
                    assert len({answer.bearer for answer in answers}) == 3
                    arrived = answers.pop(number % 3)
                    assert await _state(session, arrived) == (200, "")
                    assert [await _state(session, other) for other in answers] == [REPLACED] * 2
                    assert await _state(session, arrived) == (200, "")
        assert await _count(dsn, "nodes") == IDENTICAL


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
    "enrolment_evidence WHERE detail = 'other_key' AND node_id IS NOT NULL",
    "enrolment_evidence",
    "(SELECT DISTINCT mesh_ip FROM plexsphere.nodes) AS addresses",
    "(SELECT DISTINCT bootstrap_token_id FROM plexsphere.nodes) AS spent",
)
"""What there must be as many of as tokens, of the schema."""


async def test_every_token_has_one_winner_and_one_audited_loser() -> None:
    with migrated_database() as dsn:
        projects = TOKENS // PROJECT_TOKENS
        machines = await registrations.seed(dsn, count=TOKENS, projects=projects)
        async with postgres_world(dsn) as world:
            app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
            async with (
                listening(app, Address(host="127.0.0.1", port=0), tls=None) as url,
                aiohttp.ClientSession(url, headers={"Content-Type": "application/json"}) as session,
            ):
                answers = await _race(session, machines)
        found = {what: await _count(dsn, what) for what in COUNTED}

    assert Counter(answers) == {(201, ""): TOKENS, LOSER: TOKENS}
    assert found == dict.fromkeys(COUNTED, TOKENS)
