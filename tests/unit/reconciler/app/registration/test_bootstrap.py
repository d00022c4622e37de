"""Tokens as a tick looks after them: their pause, their end, their Secrets."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta

import pytest

from function.contract import names
from function.contract.conditions import ConditionType, ObservedCondition, find
from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate.invariants import GENERATION_MAX
from reconciler.domain.identity.token import TTL_MAX, digest
from reconciler.ports.store.aggregates import DrawnToken
from tests.contract.worlds import unknown_token
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import GONE, World


async def _two_generations() -> World:
    """The first Secret was lost, so a second generation followed."""
    world = World()
    await world.tick()
    lost = dict(world.cluster.secrets)
    world.cluster.secrets.clear()
    world.store.clock.advance(timedelta(seconds=31))
    await world.tick()
    assert world.resource.generation == 2
    # It was not lost after all: a cache or a backup brought it back.
    world.cluster.secrets.update(lost)
    return world


async def test_another_write_of_the_aggregate_does_not_put_the_next_token_off() -> None:
    world = World()
    await world.tick()
    world.cluster.secrets.clear()
    world.store.clock.advance(timedelta(seconds=31))
    written = replace(world.resource, updated_at=world.store.clock.now())
    world.store.resources[written.id] = written

    await world.tick()

    assert world.resource.generation == 2


async def test_a_node_that_comes_with_the_earlier_token_leaves_no_secret_of_any() -> None:
    world = await _two_generations()
    assert len(world.cluster.secrets) == 2
    first, second = sorted(world.store.tokens.values(), key=lambda row: row.generation)
    first.consumed_at = second.revoked_at = world.store.clock.now()

    await world.tick()

    assert world.status["bootstrap"]["state"] == "Consumed"
    assert world.cluster.secrets == {}


async def test_a_window_that_closed_is_opened_again_below_the_cap() -> None:
    world = World()
    await world.tick_until_quiet()
    world.react()
    await world.tick_until_quiet()
    world.store.clock.advance(timedelta(hours=3))
    (token,) = world.store.tokens.values()
    assert token.state(world.store.clock.now()) is BootstrapState.EXPIRED

    await world.tick()

    assert token.state(world.store.clock.now()) is BootstrapState.ISSUED
    stalled = find(world.status, ConditionType.STALLED)
    assert stalled is None or stalled.reason != "TokenExpired"


@pytest.mark.parametrize("reason", ["TokenExpired", "TokenRevoked"])
async def test_a_machine_whose_token_ended_stalls_its_record(reason: str) -> None:
    world = World()
    await world.tick_until_quiet()
    world.react()
    await world.tick_until_quiet()
    (row,) = world.store.tokens.values()
    if reason == "TokenRevoked":
        row.revoked_at = world.store.clock.now()
    # Past the cap no renewal reaches, however often a tick comes by.
    world.store.clock.advance(TTL_MAX + timedelta(seconds=1))

    await world.tick()
    await world.tick()

    stalled = find(world.status, ConditionType.STALLED)
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", reason)
    assert "to have the machine recreated" in stalled.message
    assert world.resource.generation == 1


async def _enrolling() -> World:
    world = World()
    await world.tick_until_quiet()
    world.react()
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.ENROLLING
    return world


def _stalled(world: World) -> ObservedCondition | None:
    return find(world.status, ConditionType.STALLED)


@pytest.mark.parametrize(("minutes", "late"), [(14, False), (15, True)])
async def test_a_node_that_does_not_come_in_time_stalls_its_record(
    minutes: int, late: bool
) -> None:
    world = await _enrolling()
    # What is written meanwhile does not put the deadline off.
    world.store.clock.advance(timedelta(minutes=7))
    written = replace(world.resource, updated_at=world.store.clock.now())
    world.store.resources[written.id] = written
    world.store.clock.advance(timedelta(minutes=minutes - 7))

    await world.tick()

    stalled = _stalled(world)
    assert (stalled is not None and stalled.status == "True") is late
    if stalled is not None and late:
        assert stalled.reason == "RegistrationTimeout"
        assert "within 15 min" in stalled.message
    assert world.resource.phase is Phase.ENROLLING


async def test_a_node_that_comes_late_is_welcome() -> None:
    world = await _enrolling()
    world.store.clock.advance(timedelta(minutes=20))
    await world.tick()

    world.register()
    await world.tick_until_quiet()

    stalled = _stalled(world)
    assert stalled is None or stalled.status == "False"
    assert world.resource.phase is Phase.READY


async def test_a_secret_that_is_refused_burns_no_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()

    async def refused(*_: object, **__: object) -> bool:
        raise ConnectionRefusedError

    with monkeypatch.context() as patched:
        patched.setattr(world.cluster, "create_token_secret", refused)
        for _ in range(20):
            with pytest.raises(ConnectionRefusedError):
                await world.tick()
            world.store.clock.advance(timedelta(seconds=31))
        assert world.resource.generation == 1
        assert world.store.tokens == {}

    await world.tick()

    assert world.resource.generation == 1
    assert [row.generation for row in world.store.tokens.values()] == [1]
    assert len(world.cluster.secrets) == 1


async def test_a_secret_whose_text_nobody_knows_gives_way_to_the_next_generation() -> None:
    world = World()
    await world.tick()
    (token,) = world.store.tokens
    del world.store.tokens[token]
    orphan = replace(world.resource, bootstrap_token_id=None)
    world.store.resources[orphan.id] = orphan

    await world.tick()

    assert world.resource.generation == 2
    ((_, drawn),) = world.cluster.secrets.items()
    (row,) = world.store.tokens.values()
    assert drawn.generation == row.generation == 2
    assert digest(drawn.plaintext) == row.digest


async def _at_the_last(*, issued: bool) -> World:
    """The last generation there may be was claimed, and issued; its Secret is gone."""
    world = World()
    await world.tick()
    world.cluster.secrets.clear()
    world.store.clock.advance(timedelta(seconds=31))
    last = replace(world.resource, generation=GENERATION_MAX)
    world.store.resources[last.id] = last
    if issued:
        (token,) = world.store.tokens.values()
        token.generation = GENERATION_MAX
    return world


async def test_who_has_no_further_generation_stalls_and_says_what_to_do() -> None:
    world = await _at_the_last(issued=True)

    await world.tick()
    written = copy.deepcopy(world.raw)
    journal = len(world.cluster.journal)
    world.store.clock.advance(timedelta(minutes=1))
    await world.tick()

    stalled, registered = _stalled(world), find(world.status, ConditionType.NODE_REGISTERED)
    assert stalled is not None
    assert registered is not None
    assert (stalled.status, stalled.reason) == ("True", "GenerationsExhausted")
    assert "delete the XR and apply it again" in stalled.message
    assert (registered.status, registered.reason) == ("False", "GenerationsExhausted")
    assert (world.resource.generation, len(world.store.tokens)) == (GENERATION_MAX, 1)
    assert (world.raw, len(world.cluster.journal)) == (written, journal)


async def test_a_machine_that_carries_the_last_token_is_not_given_up() -> None:
    world = await _at_the_last(issued=True)
    reference = samples.SUBSTRATE.model_copy(update={"name": world.resource.xr_name})
    world.cluster.compose(reference, uid="just-composed")

    await world.tick()

    stalled = _stalled(world)
    assert stalled is None or stalled.status == "False"


async def test_the_last_generation_is_issued_though_somebody_left_a_secret_of_its_name() -> None:
    world = await _at_the_last(issued=False)
    left = DrawnToken(generation=GENERATION_MAX, plaintext=unknown_token())
    name = names.token_secret_name(world.raw["metadata"]["name"], GENERATION_MAX)
    await world.cluster.create_token_secret(world.raw, name=name, token=left)

    await world.tick()
    await world.tick()

    assert world.resource.generation == GENERATION_MAX
    ((_, drawn),) = world.cluster.secrets.items()
    newest = max(world.store.tokens.values(), key=lambda row: row.generation)
    assert newest.generation == drawn.generation == GENERATION_MAX
    assert digest(drawn.plaintext) == newest.digest


async def test_who_has_no_further_generation_is_taken_down_like_any_other() -> None:
    world = await _at_the_last(issued=True)
    await world.tick()

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer


async def test_a_node_that_somebody_took_out_is_called_that() -> None:
    world = World()
    await world.until_ready()
    for node in world.store.nodes.values():
        node.deregistered_at = world.store.clock.now()

    await world.tick_until_quiet()

    for kind, status in (
        (ConditionType.READY, "False"),
        (ConditionType.STALLED, "True"),
        (ConditionType.NODE_REGISTERED, "False"),
    ):
        found = find(world.status, kind)
        assert found is not None
        assert (found.status, found.reason) == (status, "DeregisteredElsewhere")
    # Made anew, it is told of no more.
    world.cluster.objects.clear()
    world.store.clock.advance(timedelta(minutes=1))
    world.raw["spec"]["observed"] = {"exists": False}
    await world.tick_until_quiet()
    world.register()
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.READY
    ready = find(world.status, ConditionType.READY)
    assert ready is not None
    assert ready.status == "True"


async def test_the_window_starts_anew_when_the_substrate_is_ready() -> None:
    world = World()
    await world.tick()
    world.react()
    world.raw["spec"]["observed"]["ready"] = False
    await world.tick()
    (token,) = world.store.tokens.values()
    world.store.clock.advance(timedelta(minutes=20))

    world.raw["spec"]["observed"]["ready"] = True
    await world.tick()

    assert world.resource.phase is Phase.ENROLLING
    assert token.expires_at == world.store.clock.now() + timedelta(hours=1)
