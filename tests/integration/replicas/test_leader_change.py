"""The leader goes in the middle of teardowns, with two real processes; the other ends them all.

Six teardowns stand still, each at another moment, when it happens; a seventh went before it.
They end as that one did, and who led before writes nothing any more, also when it comes back
while some of them still stand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from dev import facts
from dev.controlplane import ControlPlane
from dev.process import answers
from tests.integration.load.agents import LONG, Agents, eventually
from tests.integration.replicas.moments import IN_STORE, Departure, Gate, Gates, Moment, gated
from tests.integration.replicas.pair import STEP_S, Pair, Replica, pair
from tests.integration.replicas.test_failover import NEVER, WAYS
from tests.integration.replicas.writes import writes

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PLAIN: Final = "plain"
"""The teardown that nothing befalls."""

CHOSEN: Final = WAYS if LONG else {way: WAYS[way] for way in ("kill", "stop")}


@pytest.mark.parametrize("way", CHOSEN.values(), ids=CHOSEN.keys())
async def test_fault_06_a_teardown_ends_as_ever_whenever_its_leader_goes(
    way: Callable[[Replica], None], control_plane: ControlPlane, tmp_path: Path
) -> None:
    log = control_plane.audit_log
    if log is None:
        pytest.skip("nobody tells us who wrote to another's API server")
    async with AsyncExitStack() as stack:
        both = await stack.enter_async_context(pair(control_plane, tmp_path, **NEVER))
        gates = await stack.enter_async_context(gated(both.dsn))
        leader, follower = await both.roles()
        fence = await both.fence()
        lives = await _ready(both, [*Moment, PLAIN])
        await _stand(lives, gates, leader)

        await asyncio.to_thread(way, leader)
        await gates.open(Gate.STORING)
        await both.led_by(follower, after=fence)
        taken_over = datetime.now(UTC)
        await _end(lives, IN_STORE)
        await _comes_back(leader)
        await _end(lives, frozenset(Moment) - IN_STORE)

        for replica in both.replicas:
            replica.broker.assert_running()
        ends = {life.name: await gates.end(life) for life in lives}
        told = writes(log, namespace=both.stage.namespace)
        await asyncio.to_thread(_assert_in_order, both.dsn, log, lives)

    assert ends == dict.fromkeys(ends, ends[PLAIN])
    assert ends[PLAIN]["status"] == "Deleted"
    assert [each for each in told if each.at > taken_over and _is(leader, each.credential)] == []
    assert [each for each in told if each.at < taken_over and _is(leader, each.credential)] != []


async def _ready(both: Pair, names: Sequence[str]) -> list[Departure]:
    """Take a machine to Ready for each name; half of them register with the follower."""

    async def one(name: str, replica: Replica) -> Departure:
        life = await Departure.begun(both.stage, name)
        async with aiohttp.ClientSession(replica.broker.node_url) as session:
            await life.registers(Agents(session))
        return life

    turns = (both.replicas[number % 2] for number in range(len(names)))
    return list(await asyncio.gather(*(one(*each) for each in zip(names, turns, strict=True))))


async def _stand(lives: Sequence[Departure], gates: Gates, leader: Replica) -> None:
    """Have each stand at its moment; nothing that follows from the last reaches the API server."""
    by_name = {life.name: life for life in lives}
    await asyncio.gather(*(life.asks() for life in lives if life.name not in IN_STORE))
    await by_name[PLAIN].until_gone()
    await asyncio.gather(
        *(by_name[moment].arrives(gates) for moment in Moment if moment not in IN_STORE)
    )
    await asyncio.gather(*(by_name[moment].asks() for moment in (Moment.ASKED, Moment.LEAVING)))
    await gates.reached(Gate.STORING, by=2)
    await by_name[Moment.LAST].asks()
    await by_name[Moment.LAST].arrives(gates)
    await gates.reached(Gate.LAST)
    leader.api.swallow()
    await gates.open(Gate.LAST)
    await gates.until_stored(by_name[Moment.LAST], "Deleted")


async def _end(lives: Sequence[Departure], moments: frozenset[Moment]) -> None:
    """Let go of those that stand at some moments, and wait until they are gone."""
    chosen = [life for life in lives if life.name in moments]
    await asyncio.gather(*(life.is_let_go() for life in chosen))
    await asyncio.gather(*(life.until_gone() for life in chosen))


async def _comes_back(former: Replica) -> None:
    """Let a former leader go on, or start it again; what it left on its wires arrives now."""
    former.mend()
    if former.broker.is_running:
        url = f"{former.broker.operator_url}/readyz"
        await eventually(
            lambda: asyncio.to_thread(answers, url), timeout_s=STEP_S, what="the former leader"
        )
    else:
        await asyncio.to_thread(former.broker.start)


def _is(replica: Replica, credential: str) -> bool:
    return credential == replica.credential


def _assert_in_order(dsn: str, log: Path, lives: Sequence[Departure]) -> None:
    """Assert that each node was out before anybody could delete its substrate."""
    told = [*facts.from_postgres(dsn), *facts.from_audit(log)]
    for life in lives:
        about = sorted(fact for fact in told if fact.subject == life.handle)
        out = [fact.at for fact in about if fact.what == "deregistered"]
        deletions = [fact.at for fact in about if fact.what.startswith("delete xgenericvms 2")]
        assert len(out) == 1, about
        assert deletions, about
        assert out[0] < min(deletions), about
