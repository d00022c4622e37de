"""The other replica takes over, whatever became of the leader; the leader does no harm after it.

Each way once by default; `HYPOTHESIS_PROFILE=long` takes three, and holds the whole of a
failover, up to the first new token, to its time.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, LiteralString

import pytest

from dev.controlplane import ControlPlane
from tests.integration.load.agents import LONG, eventually
from tests.integration.load.ledger import assert_one_node_each, execute
from tests.integration.replicas.pair import FAILOVER_S, STEP_S, Pair, Replica, pair
from tests.integration.replicas.writes import writes
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900 if LONG else 300)]

NEVER: Final = {"PLEXSPHERE_PROVISIONING_BROKER_RECONCILE_INTERVAL": "1h"}
"""No sweep but that of a takeover: what is done is done because somebody was told."""

CREATED_SECRET: Final = ("create", "secrets")

_SPENT: Final[LiteralString] = """
SELECT jsonb_object_agg(resource.owner_name || '-record', token.generation)
FROM plexsphere.provisioned_resources AS resource
JOIN plexsphere.bootstrap_tokens AS token ON token.provisioned_resource_id = resource.id
WHERE token.consumed_at IS NOT NULL
"""
"""The generation that each record's machine registered with."""

HANDOVER_S: Final = 3.0
"""How soon somebody else leads when the leader is told to stop."""


def _stop(leader: Replica) -> None:
    leader.broker.pause()
    made(Kind.STOPPED)


WAYS: Final = {
    "kill": lambda leader: leader.broker.kill(),
    "stop": _stop,
    "cut": lambda leader: leader.wire.cut(),
    "swallow": lambda leader: leader.wire.swallow(),
}


@pytest.mark.parametrize("turn", range(3 if LONG else 1))
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_fault_04_27_somebody_else_leads_in_time_and_the_life_goes_on(
    way: Callable[[Replica], None], turn: int, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with pair(control_plane, tmp_path, **NEVER) as both:
        leader, follower = await both.roles()
        await both.live("before", leader)
        fence = await both.fence()
        begun = time.monotonic()

        await asyncio.to_thread(way, leader)
        record = await both.stage.declare("after")
        await both.led_by(follower, after=fence)
        taken_over = time.monotonic() - begun
        await both.stage.token(record)
        whole = time.monotonic() - begun
        await _goes_on(both, leader, follower)

    assert taken_over < FAILOVER_S
    assert not LONG or whole < FAILOVER_S


async def _goes_on(both: Pair, former: Replica, leader: Replica) -> None:
    """Let the former leader come back; it stands by, and what it left open does no harm."""
    former.mend()
    await both.live("later", leader)
    fence = await both.fence()
    await both.live("last", leader)

    assert await both.fence() == fence
    leader.broker.assert_running()
    # The one that was declared while nobody led has no machine.
    assert await both.told("broker.ProvisionedResourceReady") == 3


_REFUSAL: Final[LiteralString] = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE 'demoted' USING ERRCODE = '25006'; END$$
"""
_REFUSE: Final[LiteralString] = """
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON plexsphere.driver_leases
FOR EACH ROW EXECUTE FUNCTION refuse()
"""
_REFUSE_NO_MORE: Final[LiteralString] = "DROP TRIGGER refuse ON plexsphere.driver_leases"
_WANTED: Final[LiteralString] = """
SELECT bool_and(expires_at + interval '3 seconds' < clock_timestamp())
FROM plexsphere.driver_leases
"""
"""Long enough for each to have stood for it."""


async def test_a_store_that_refuses_for_a_while_ends_a_term_and_no_process(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with pair(control_plane, tmp_path, **NEVER) as both:
        await both.roles()
        fence = await both.fence()
        await execute(both.dsn, _REFUSAL)
        await execute(both.dsn, _REFUSE)
        await eventually(
            lambda: execute(both.dsn, _WANTED), timeout_s=STEP_S, what="a lease that is over"
        )

        await execute(both.dsn, _REFUSE_NO_MORE)
        leader, _ = await both.roles()

        await both.led_by(leader, after=fence)
        for replica in both.replicas:
            replica.broker.assert_running()


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with pair(control_plane, tmp_path, **NEVER) as both:
        leader, follower = await both.roles()
        fence = await both.fence()
        begun = time.monotonic()
        ending = asyncio.create_task(asyncio.to_thread(leader.broker.stop))
        await both.led_by(follower, after=fence)
        seconds = time.monotonic() - begun
        await ending
        await both.live("after", follower)

    assert seconds < HANDOVER_S


async def test_what_registers_with_the_follower_is_ready_without_a_sweep(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with pair(control_plane, tmp_path, **NEVER) as both:
        _, follower = await both.roles()
        for number in range(3):
            await both.live(f"node-{number}", follower)

        await assert_one_node_each(both.dsn, resources=3)


async def test_fault_05_of_a_lease_that_two_believe_in_comes_one_usable_token_each(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    log = control_plane.audit_log
    if log is None:
        pytest.skip("nobody tells us what was written to another's API server")
    async with pair(control_plane, tmp_path, PLEXSPHERE_LEASE_TTL="4s") as both:
        leader, follower = await both.roles()
        lives = [
            asyncio.create_task(both.live(f"node-{number:02}", both.replicas[number % 2]))
            for number in range(12)
        ]
        for _ in range(4):
            # As if somebody had edited the row: the leader goes on believing in its time.
            await both.steal()
            made(Kind.SPLIT_LEAD)
        await asyncio.gather(*lives)
        for replica in (leader, follower):
            replica.broker.assert_running()

        await assert_one_node_each(both.dsn, resources=12)
        assert await both.told("broker.ProvisionedResourceReady") == 12
        told = writes(log, namespace=both.stage.namespace)
        spent = json.loads(str(await execute(both.dsn, _SPENT)))
    delivered = [each.name for each in told if (each.verb, each.resource) == CREATED_SECRET]

    # A term that ends between a text's Secret and its token's row costs a generation that opens
    # nothing. What a machine was booted with is the last one: after it none was handed out.
    last: dict[str, int] = {}
    for name in delivered:
        record, _, generation = name.rpartition("-g")
        last[record] = max(last.get(record, 0), int(generation))
    assert sorted(last) == [f"node-{number:02}-record" for number in range(12)]
    assert last == spent
