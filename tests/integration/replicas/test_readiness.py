"""Readiness tells whether the cluster is driven: by each fault on real Postgres, and well again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, LiteralString

import aiohttp
import asyncpg
import pytest

from dev.controlplane import ControlPlane
from tests.integration.load.agents import eventually
from tests.integration.load.ledger import execute
from tests.integration.replicas.pair import STEP_S, Pair, Replica, pair

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PROBE: Final = "provisioning-broker-reconcile"
OFTEN: Final = {"PLEXSPHERE_PROVISIONING_BROKER_RECONCILE_INTERVAL": "2s"}

_READ_ONLY: Final[LiteralString] = """
DO $$BEGIN
EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
END$$
"""
_WRITABLE: Final[LiteralString] = """
DO $$BEGIN
EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database());
END$$
"""
_END_SESSIONS: Final[LiteralString] = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> $1
"""
"""What a read-only default, as that of a role, leaves alone are the sessions that there are."""
LEASE: Final = "plexsphere-broker-lease"


async def _ask(replica: Replica, query: str = "") -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{replica.broker.operator_url}/readyz{query}") as response,
    ):
        return response.status, await response.text()


async def _until(replicas: Sequence[Replica], *, driven: bool) -> None:
    """Wait until each says that the cluster is driven, or that it is not."""
    wanted = f"[{'+' if driven else '-'}]{PROBE} "

    async def all_say_so() -> bool:
        return all([wanted in (await _ask(replica))[1] for replica in replicas])

    await eventually(all_say_so, timeout_s=STEP_S, what=wanted)


async def _for_itself(replica: Replica) -> int:
    """What a kubelet asks: may nodes be sent here?"""
    return (await _ask(replica, f"?exclude={PROBE}"))[0]


@asynccontextmanager
async def _locked(dsn: str, statement: LiteralString) -> AsyncIterator[None]:
    """Hold a lock of a session of our own, for so long that whatever needs it hangs."""
    session = await asyncpg.connect(dsn)
    try:
        async with session.transaction():
            await session.execute(statement)
            yield
    finally:
        await session.close()


@asynccontextmanager
async def _read_only(dsn: str, *, but: str) -> AsyncIterator[None]:
    """Make Postgres read-only for every session but those of one name."""
    await _run(dsn, _READ_ONLY)
    try:
        await execute(dsn, _END_SESSIONS, but)
        yield
    finally:
        await _run(dsn, _WRITABLE)
        await execute(dsn, _END_SESSIONS, but)


async def _run(dsn: str, script: LiteralString) -> None:
    own = {"default_transaction_read_only": "off"}
    session = await asyncpg.connect(dsn, server_settings=own)
    try:
        await session.execute(script)
    finally:
        await session.close()


async def test_each_thing_that_keeps_the_cluster_from_being_driven_is_told(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with pair(control_plane, tmp_path, **OFTEN) as both:
        await _until(both.replicas, driven=True)
        await _a_sweep_that_hangs(both)
        await _a_leader_that_cannot_write(both)
        await _a_lease_that_nobody_can_take(both)
        await _a_store_that_takes_no_write(both)
        await both.live("after-all", both.replicas[0])


async def _a_sweep_that_hangs(both: Pair) -> None:
    leader, follower = await both.roles()
    async with _locked(both.dsn, "LOCK TABLE plexsphere.provisioned_resources"):
        await _until([leader], driven=False)
        # Its trouble is its own to tell: who stands by goes on being ready.
        assert (await _ask(follower))[0] == 200
        assert await _for_itself(leader) == 200
    await _until(both.replicas, driven=True)


async def _a_leader_that_cannot_write(both: Pair) -> None:
    fence = await both.fence()
    async with _read_only(both.dsn, but=LEASE):
        leader, _ = await both.roles()
        await _until([leader], driven=False)
        assert "[+]postgres ok" in (await _ask(leader))[1]
        assert await both.fence() == fence, "it led all the time"
    await _until(both.replicas, driven=True)


async def _a_lease_that_nobody_can_take(both: Pair) -> None:
    async with _locked(both.dsn, "LOCK TABLE plexsphere.driver_leases IN EXCLUSIVE MODE"):
        await _until(both.replicas, driven=False)
        assert [await _for_itself(one) for one in both.replicas] == [200, 200]
    await _until(both.replicas, driven=True)


async def _a_store_that_takes_no_write(both: Pair) -> None:
    async with _read_only(both.dsn, but=""):
        await _until(both.replicas, driven=False)
        assert [await _for_itself(one) for one in both.replicas] == [200, 200]
    await _until(both.replicas, driven=True)
    for one in both.replicas:
        one.broker.assert_running()
