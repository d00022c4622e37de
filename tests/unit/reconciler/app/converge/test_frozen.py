"""While the cluster is frozen no token is issued, and the record says why."""

from __future__ import annotations

from datetime import timedelta

from function.contract.conditions import ConditionType, find
from tests.unit.reconciler.app.world import World


async def test_no_token_is_issued_while_it_is_frozen() -> None:
    world = World()
    world.steady = False

    again = await world.tick()

    assert world.store.tokens == {}
    assert again is not None
    conditions = [find(world.status, kind) for kind in ConditionType]
    assert "Frozen" in {said.reason for said in conditions if said is not None}


async def test_it_is_issued_once_it_thawed() -> None:
    world = World()
    world.steady = False
    await world.tick()

    world.steady = True
    world.store.clock.advance(timedelta(minutes=1))
    await world.until_ready()

    assert len(world.store.tokens) == 1


async def test_what_was_issued_before_is_renewed_and_a_node_becomes_ready() -> None:
    world = World()
    await world.tick_until_quiet()

    world.steady = False
    await world.until_ready()
