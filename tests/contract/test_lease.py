"""A lease has one holder at a time, and each takeover is told from the one before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, cast
from uuid import uuid4

import asyncpg
import pytest

from reconciler.adapters.postgres.connection.lease import CONNECT_TIMEOUT_S, PostgresLeases
from reconciler.app.controller.leader_election import RETRY_S
from reconciler.domain.guard.lease import TTL_DEFAULT, Pace
from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.lease import Lease, LeaseStore
from tests.fakes.databases import migrated_database
from tests.fakes.lease import InMemoryLeases

pytestmark = pytest.mark.contract

TTL = timedelta(minutes=10)
PATIENCE_S = 30.0
IDLE_S = 3.0
"""Less than the server lets a transaction idle."""
TURNS = 200
"""Of those that race; of so many some meet in the midst of an insert."""


class World(Protocol):
    @property
    def leases(self) -> LeaseStore:
        """What is tried."""

    async def passes(self, time: timedelta) -> None:
        """Let time go by for the store."""


@dataclass
class MemoryLeases:
    leases: InMemoryLeases

    async def passes(self, time: timedelta) -> None:
        self.leases.now += time.total_seconds()


@dataclass
class RealLeases:
    leases: PostgresLeases
    connection: asyncpg.Connection

    async def passes(self, time: timedelta) -> None:
        await self.connection.execute(
            "UPDATE plexsphere.driver_leases SET expires_at = expires_at - $1::interval", time
        )


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        yield MemoryLeases(InMemoryLeases())
        return
    with migrated_database() as dsn:
        connection = await asyncpg.connect(dsn)
        leases = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        yield RealLeases(leases, connection)
        leases.close()
        await connection.close()


async def _taken(world: World, lease: Lease | None = None) -> Lease:
    key = uuid4() if lease is None else lease.key
    taken = await world.leases.acquire(key, holder="one", ttl=TTL)
    assert taken is not None
    return taken


async def test_a_free_one_is_taken(world: World) -> None:
    key = uuid4()

    lease = await world.leases.acquire(key, holder="one", ttl=TTL)

    assert lease == Lease(key=key, holder="one", fence=1)


async def test_one_that_is_held_is_not(world: World) -> None:
    lease = await _taken(world)

    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is None


async def test_who_never_heard_that_it_was_given_one_takes_it_at_once(world: World) -> None:
    unheard = await _taken(world)

    again = await world.leases.acquire(unheard.key, holder="one", ttl=TTL)

    assert again == Lease(key=unheard.key, holder="one", fence=2)
    assert not await world.leases.renew(unheard, ttl=TTL)


async def test_who_lost_it_is_its_holder_no_more(world: World) -> None:
    lease = await _taken(world)
    await world.passes(TTL)
    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is not None

    assert await world.leases.acquire(lease.key, holder="one", ttl=TTL) is None
    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is not None


@pytest.mark.parametrize("length", [128, 300])
@pytest.mark.parametrize("place", [-1, -128], ids=["last", "last-but-127"])
async def test_holders_of_long_names_that_differ_near_their_end_are_two(
    world: World, length: int, place: int
) -> None:
    name = ["x"] * length
    name[place] = "y"
    one, two = "x" * length, "".join(name)
    key = uuid4()
    assert await world.leases.acquire(key, holder=one, ttl=TTL) is not None

    assert await world.leases.acquire(key, holder=two, ttl=TTL) is None
    assert await world.leases.acquire(key, holder=one, ttl=TTL) is not None


async def test_each_key_has_a_holder_of_its_own(world: World) -> None:
    await _taken(world)

    assert await world.leases.acquire(uuid4(), holder="two", ttl=TTL) is not None


async def test_one_whose_time_is_over_is_taken_with_the_next_fence(world: World) -> None:
    lease = await _taken(world)

    await world.passes(TTL)
    second = await world.leases.acquire(lease.key, holder="two", ttl=TTL)

    assert second == Lease(key=lease.key, holder="two", fence=2)


async def test_a_renewal_begins_its_time_anew(world: World) -> None:
    lease = await _taken(world)
    await world.passes(TTL / 2)

    assert await world.leases.renew(lease, ttl=TTL)
    await world.passes(TTL / 2 + TTL / 4)

    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is None


async def test_renewals_do_not_add_up(world: World) -> None:
    lease = await _taken(world)
    for _ in range(3):
        assert await world.leases.renew(lease, ttl=TTL)

    await world.passes(TTL)

    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is not None


async def test_a_renewal_is_of_one_key_alone(world: World) -> None:
    lease, other = await _taken(world), await _taken(world)
    await world.passes(TTL / 2)

    assert await world.leases.renew(lease, ttl=TTL)
    await world.passes(TTL / 2)

    assert await world.leases.acquire(other.key, holder="two", ttl=TTL) is not None
    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is None


async def test_a_release_is_of_one_key_alone(world: World) -> None:
    lease, other = await _taken(world), await _taken(world)

    await world.leases.release(lease)

    assert await world.leases.acquire(other.key, holder="two", ttl=TTL) is None


async def test_a_term_that_a_restored_store_has_not_reached_is_neither_renewed_nor_released(
    world: World,
) -> None:
    lease = await _taken(world)
    later = Lease(key=lease.key, holder="one", fence=lease.fence + 1)
    await world.passes(TTL / 2)

    assert not await world.leases.renew(later, ttl=TTL)
    await world.leases.release(later)

    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is None
    await world.passes(TTL / 2)
    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is not None


async def test_one_that_nobody_took_is_renewed_although_its_time_was_over(world: World) -> None:
    lease = await _taken(world)
    await world.passes(TTL)

    assert await world.leases.renew(lease, ttl=TTL)

    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is None


async def test_a_former_holder_can_neither_renew_nor_release(world: World) -> None:
    lease = await _taken(world)
    await world.passes(TTL)
    await _taken(world, lease)

    assert not await world.leases.renew(lease, ttl=TTL)
    await world.leases.release(lease)

    assert await world.leases.acquire(lease.key, holder="three", ttl=TTL) is None


async def test_a_released_one_is_free_at_once(world: World) -> None:
    lease = await _taken(world)

    await world.leases.release(lease)
    await world.leases.release(lease)

    assert await world.leases.acquire(lease.key, holder="two", ttl=TTL) is not None


@pytest.mark.integration
async def test_of_many_that_come_at_once_one_gets_it() -> None:
    with migrated_database() as dsn:
        stores = [PostgresLeases(dsn, answer_within=timedelta(seconds=60)) for _ in range(8)]
        fences = []
        for key in [uuid4() for _ in range(TURNS)]:
            taken = await asyncio.gather(
                *(store.acquire(key, holder=f"{n}", ttl=TTL) for n, store in enumerate(stores))
            )
            fences.append([lease.fence for lease in taken if lease is not None])
        for store in stores:
            store.close()

    assert fences == [[1]] * TURNS


_LINES = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'plexsphere-broker-lease' AND datname = current_database()
"""


async def _until_no_line_is_left(connection: asyncpg.Connection) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await connection.fetchval(_LINES):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.integration
async def test_a_take_whose_answer_is_late_keeps_nobody_waiting_for_the_lease_to_end() -> None:
    with migrated_database() as dsn:
        leases = PostgresLeases(dsn, answer_within=timedelta(milliseconds=300))
        before = await leases.acquire(uuid4(), holder="one", ttl=TTL)
        assert before is not None
        await leases.release(before)
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval(_LINES) == 1
        async with connection.transaction():
            await connection.execute("SELECT FROM plexsphere.driver_leases FOR UPDATE")
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(StoreUnavailableError):
                    await leases.acquire(before.key, holder="one", ttl=TTL)
        await _until_no_line_is_left(connection)

        patient = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        after = await patient.acquire(before.key, holder="one", ttl=TTL)

        assert after is not None
        assert after.fence > before.fence
        patient.close()
        await connection.close()


@pytest.mark.integration
async def test_a_call_that_is_left_in_the_middle_leaves_no_line_behind() -> None:
    with migrated_database() as dsn:
        leases = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        lease = await leases.acquire(uuid4(), holder="one", ttl=TTL)
        assert lease is not None
        connection = await asyncpg.connect(dsn)
        async with connection.transaction():
            await connection.execute("SELECT FROM plexsphere.driver_leases FOR UPDATE")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await leases.renew(lease, ttl=TTL)

        await _until_no_line_is_left(connection)

        assert await leases.renew(lease, ttl=TTL)
        leases.close()
        await connection.close()


@pytest.mark.integration
async def test_a_line_that_the_server_cut_is_made_anew_without_a_failure() -> None:
    with migrated_database() as dsn:
        leases = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        lease = await leases.acquire(uuid4(), holder="one", ttl=TTL)
        assert lease is not None
        line = leases._connection
        assert line is not None
        connection = await asyncpg.connect(dsn)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'plexsphere-broker-lease' AND datname = current_database()"
        )
        async with asyncio.timeout(PATIENCE_S):
            while not line.is_closed():  # noqa: ASYNC110 - the driver tells nobody
                await asyncio.sleep(0.01)

        assert await leases.renew(lease, ttl=TTL)
        leases.close()
        await connection.close()


@pytest.mark.integration
async def test_who_stands_by_waits_for_no_write_of_the_holder_and_for_no_maintenance() -> None:
    with migrated_database() as dsn:
        leases = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        lease = await leases.acquire(uuid4(), holder="one", ttl=TTL)
        assert lease is not None
        connection = await asyncpg.connect(dsn)
        async with connection.transaction():
            # A write of the holder's under way, and what an index that is made takes.
            await connection.execute("SELECT FROM plexsphere.driver_leases FOR KEY SHARE")
            await connection.execute("LOCK TABLE plexsphere.driver_leases IN SHARE MODE")
            async with asyncio.timeout(IDLE_S):
                assert await leases.acquire(lease.key, holder="two", ttl=TTL) is None
        leases.close()
        await connection.close()


@pytest.mark.integration
async def test_a_server_that_takes_the_line_and_says_nothing_is_given_up() -> None:
    lines: list[asyncio.Task[None]] = []

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(cast("asyncio.Task[None]", asyncio.current_task()))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    leases = PostgresLeases(
        f"postgresql://nobody:nothing@127.0.0.1:{port}/none", answer_within=timedelta(seconds=60)
    )

    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(StoreUnavailableError):
            await leases.acquire(uuid4(), holder="one", ttl=TTL)
        silent.close()
        await asyncio.gather(*lines)

    assert lines


def test_after_a_line_that_could_not_be_made_another_try_fits_into_a_term() -> None:
    pace = Pace(ttl=TTL_DEFAULT)

    first_s = pace.renewed_every.total_seconds() + CONNECT_TIMEOUT_S + RETRY_S

    assert first_s + CONNECT_TIMEOUT_S / 2 < pace.held_for.total_seconds()


_REFUSALS = {
    "a primary that was demoted": "25006",
    "a full disk": "53100",
    "a cancelled statement": "57014",
}


@pytest.mark.integration
@pytest.mark.parametrize("code", _REFUSALS.values(), ids=_REFUSALS.keys())
async def test_a_refusal_that_may_pass_counts_as_a_store_that_is_away(code: str) -> None:
    with migrated_database() as dsn:
        leases = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        held = await leases.acquire(uuid4(), holder="one", ttl=TTL)
        assert held is not None
        connection = await asyncpg.connect(dsn)
        await connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN RAISE 'no' USING ERRCODE = '{code}'; END$$"
        )
        await connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON plexsphere.driver_leases "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )

        for asked in (
            leases.acquire(uuid4(), holder="one", ttl=TTL),
            leases.renew(held, ttl=TTL),
            leases.release(held),
        ):
            with pytest.raises(StoreUnavailableError, match="refuses it temporarily"):
                await asked
        leases.close()
        await connection.close()


@pytest.mark.integration
async def test_a_table_that_is_missing_does_not_come_by_itself() -> None:
    with migrated_database() as dsn:
        leases = PostgresLeases(dsn, answer_within=timedelta(seconds=60))
        connection = await asyncpg.connect(dsn)
        await connection.execute("DROP TABLE plexsphere.driver_leases")

        with pytest.raises(asyncpg.UndefinedTableError):
            await leases.acquire(uuid4(), holder="one", ttl=TTL)
        leases.close()
        await connection.close()
