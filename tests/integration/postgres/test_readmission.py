"""A repetition that was judged to be one, when that no longer holds by the time it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import asyncpg
import pytest

from reconciler.adapters.postgres.registration.enrolment_store import PostgresEnrolmentStore
from reconciler.adapters.postgres.registration.registration_transaction import PostgresRegistration
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.registration import READMISSIONS_MAX, RegistrationFacts
from reconciler.domain.identity.registration_body import RegistrationRequest
from reconciler.ports.registration import Registered, RegistrationUnit
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World

pytestmark = pytest.mark.integration

Deed = Callable[[], Awaitable[object]]

KEYS: Final = "SELECT nsk_hash, previous_nsk_hash FROM plexsphere.nodes"


class _Late(PostgresRegistration):
    """Something happens right after what is stored was read, once."""

    deeds: list[Deed]

    async def facts(self, request: RegistrationRequest) -> RegistrationFacts:
        found = await super().facts(request)
        while self.deeds:
            await self.deeds.pop()()
        return found


class _LateStore(PostgresEnrolmentStore):
    def __init__(self, pool: asyncpg.Pool, deed: Deed) -> None:
        super().__init__(pool)
        self._lent = pool
        self._deeds = [deed]

    @asynccontextmanager
    async def registration(self) -> AsyncIterator[RegistrationUnit]:
        async with self._lent.acquire() as connection:
            unit = _Late(connection, lock_wait_ms=1000)
            unit.deeds = self._deeds
            yield unit


async def _repeated(
    world: World,
    pool: asyncpg.Pool,
    happens: Callable[[ids.NodeID, IssuedToken], Awaitable[object]],
) -> Denial | Registered:
    resource = await world.resource()
    token = await world.token(resource)
    node = await world.register(resource, token)
    assert isinstance(node, Registered)
    before = await pool.fetch(KEYS)
    late = replace(world, enrolment_store=_LateStore(pool, lambda: happens(node.node_id, token)))

    answer = await late.register(resource, token)

    assert await pool.fetch(KEYS) == before
    assert await world.backdoor.readmissions() == []
    return answer


async def test_a_resource_whose_deletion_was_asked_for_meanwhile_gives_no_fresh_key(
    world: World, pool: asyncpg.Pool
) -> None:
    async def deleted(_node: ids.NodeID, _token: IssuedToken) -> None:
        await pool.execute(
            "UPDATE plexsphere.provisioned_resources SET deletion_requested_at = now()"
        )

    answer = await _repeated(world, pool, deleted)

    assert isinstance(answer, Denial)
    assert answer.code == "resource_not_found"


async def test_the_twentieth_fresh_key_that_was_given_meanwhile_is_the_last(
    world: World, pool: asyncpg.Pool
) -> None:
    async def used_up(node: ids.NodeID, _token: IssuedToken) -> None:
        await pool.execute(
            "UPDATE plexsphere.nodes SET readmitted = $2 WHERE id = $1", node, READMISSIONS_MAX
        )

    answer = await _repeated(world, pool, used_up)

    assert isinstance(answer, Denial)
    assert answer.code == "token_consumed"
    assert await pool.fetchval("SELECT readmitted FROM plexsphere.nodes") == READMISSIONS_MAX


@pytest.mark.parametrize("column", ["reported_at", "last_heartbeat_at"])
async def test_a_node_that_reported_meanwhile_keeps_its_key(
    world: World, pool: asyncpg.Pool, column: str
) -> None:
    async def reported(node: ids.NodeID, _token: IssuedToken) -> None:
        await pool.execute(
            f"UPDATE plexsphere.nodes SET {column} = now() WHERE id = $1",  # noqa: S608 - ours
            node,
        )

    answer = await _repeated(world, pool, reported)

    assert isinstance(answer, Denial)
    assert answer.code == "token_consumed"


async def test_a_node_that_left_meanwhile_does_not_come_back(
    world: World, pool: asyncpg.Pool
) -> None:
    async def left(_node: ids.NodeID, token: IssuedToken) -> None:
        await world.deregistrar.deregister(token.id)

    answer = await _repeated(world, pool, left)

    assert isinstance(answer, Denial)
    assert answer.code == "token_consumed"
    assert not await pool.fetchval(
        "SELECT count(*) FROM plexsphere.nodes WHERE deregistered_at IS NULL"
    )
