"""A substrate that does not come in time: the record stalls and tells the lowest cause."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from function.contract.conditions import ConditionType, ObservedCondition, find
from function.contract.record import SubstrateReference
from function.contract.strategy import MeshRole, Phase
from reconciler.domain.aggregate.children import DEPTH_MAX
from reconciler.domain.record import unready
from reconciler.domain.record.unready import LOOKS_MAX
from reconciler.ports.cluster.substrates import LiveObject
from tests.fakes.memory import FrozenClock
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import World

LIMIT = timedelta(minutes=30)
SECOND = timedelta(seconds=1)
SERVER = SubstrateReference(api_version="cloud.test/v1", kind="Server", name="vm")
REFUSED = ("False", "ReconcileError", "create failed: quota exceeded")
CREATING = ("False", "Creating", "")


def _key(reference: SubstrateReference) -> tuple[str, str, str]:
    return reference.api_version, reference.kind, reference.name


def _substrate(world: World) -> SubstrateReference:
    return samples.SUBSTRATE.model_copy(update={"name": world.resource.xr_name})


def _says(world: World, reference: SubstrateReference, **said: tuple[str, str, str]) -> None:
    world.cluster.said[_key(reference)] = said


def _stalled(world: World) -> ObservedCondition:
    said = find(world.status, ConditionType.STALLED)
    assert said is not None
    return said


async def _ticked(world: World, *, ready: bool = False) -> float | None:
    """Tick with a substrate that exists; whether it is ready is told."""
    world.raw["spec"]["observed"]["ready"] = ready
    return await world.tick()


async def _provisioning(*below: SubstrateReference) -> World:
    """Return a world whose substrate was just seen and is not ready."""
    world = World()
    await world.tick()
    world.react()
    substrate = _substrate(world)
    live = world.cluster.objects[_key(substrate)]
    world.cluster.objects[_key(substrate)] = replace(live, below=below)
    for reference in below:
        world.cluster.objects[_key(reference)] = LiveObject(
            uid=f"uid-{reference.name}", terminating=False, released=False
        )
    _says(world, substrate, Synced=("True", "ReconcileSuccess", ""), Ready=CREATING)
    await _ticked(world)
    assert world.resource.phase is Phase.PROVISIONING
    return world


async def test_a_substrate_that_its_provider_refuses_is_named_after_the_deadline() -> None:
    world = await _provisioning(SERVER)
    _says(world, SERVER, Synced=REFUSED, Ready=CREATING)
    world.store.clock.advance(LIMIT - SECOND)
    await _ticked(world)
    assert _stalled(world).status == "False"

    world.store.clock.advance(SECOND)
    await _ticked(world)

    said = _stalled(world)
    assert (said.status, said.reason) == ("True", "ProvisioningTimeout")
    assert said.message == (
        "The substrate exists but is not ready after 30 min. Server 'vm' of cloud.test/v1: Synced "
        "is False (ReconcileError): create failed: quota exceeded"
    )
    ready = find(world.status, ConditionType.READY)
    assert ready is not None
    assert ready.reason == "ProvisioningTimeout"


async def test_nothing_is_read_below_a_substrate_that_is_not_late() -> None:
    world = await _provisioning(SERVER)
    world.store.clock.advance(LIMIT - SECOND)

    await _ticked(world)

    assert world.cluster.looks == []


async def test_it_is_looked_at_again_when_its_time_ends() -> None:
    world = await _provisioning()
    world.store.clock.advance(timedelta(minutes=10))

    assert await _ticked(world) == timedelta(minutes=20).total_seconds()


async def test_a_machine_that_comes_late_ends_the_stall_and_lives_on() -> None:
    world = await _provisioning(SERVER)
    world.store.clock.advance(LIMIT)
    await _ticked(world)
    assert _stalled(world).status == "True"

    await _ticked(world, ready=True)
    assert (_stalled(world).status, world.resource.phase) == ("False", Phase.ENROLLING)

    world.register()
    await _ticked(world, ready=True)
    assert world.resource.phase is Phase.READY


async def test_flapping_does_not_begin_its_time_anew() -> None:
    world = await _provisioning(SERVER)
    for _ in range(5):
        world.store.clock.advance(LIMIT / 6)
        await _ticked(world, ready=True)
        await _ticked(world)
    assert _stalled(world).status == "False"

    world.store.clock.advance(LIMIT / 6)
    await _ticked(world)

    assert _stalled(world).reason == "ProvisioningTimeout"


async def test_the_time_of_one_that_was_ready_begins_when_it_is_not() -> None:
    world = await _provisioning(SERVER)
    world.register()
    await _ticked(world, ready=True)
    world.store.clock.advance(LIMIT * 100)
    await _ticked(world)
    assert _stalled(world).status == "False"

    world.store.clock.advance(LIMIT)
    await _ticked(world)

    assert _stalled(world).reason == "ProvisioningTimeout"


async def test_the_stores_clock_decides_and_not_the_processs_own() -> None:
    world = World(clock=FrozenClock(samples.NOW))
    await world.tick()
    world.react()
    await _ticked(world)
    assert world.clock is not None
    world.clock.advance(LIMIT * 2)
    await _ticked(world)
    assert _stalled(world).status == "False"

    world.store.clock.advance(LIMIT)
    await _ticked(world)

    assert _stalled(world).reason == "ProvisioningTimeout"


async def test_a_blueprint_may_give_another_time() -> None:
    world = await _provisioning(SERVER)
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = samples.BLUEPRINT.model_copy(
        update={"provisioning_timeout": "2h"}
    )
    world.store.clock.advance(LIMIT * 3)
    assert await _ticked(world) == LIMIT.total_seconds()

    world.store.clock.advance(LIMIT)
    await _ticked(world)

    assert "after 120 min" in _stalled(world).message


async def test_a_substrate_that_is_never_composed_tells_what_its_xr_says() -> None:
    world = World()
    await world.tick()
    xr = world.raw["spec"]["declaration"]["xr"]
    above = SubstrateReference(api_version=xr["apiVersion"], kind=xr["kind"], name=xr["name"])
    world.cluster.objects[_key(above)] = LiveObject(uid="xr", terminating=False, released=False)
    _says(world, above, Synced=("False", "ReconcileError", "spec.parameters: Invalid value"))
    world.store.clock.advance(LIMIT)

    await world.tick()

    said = _stalled(world)
    assert said.reason == "ProvisioningTimeout"
    assert said.message.startswith("The substrate does not exist after 30 min. ProvisionedResource")
    assert "spec.parameters: Invalid value" in said.message


async def test_a_standalone_substrate_has_the_same_time() -> None:
    world = World()
    world.raw["spec"]["declaration"]["meshRole"] = MeshRole.STANDALONE.value
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = samples.BLUEPRINT.model_copy(
        update={"mesh_role": MeshRole.STANDALONE}
    )
    await world.tick()
    world.store.clock.advance(LIMIT)

    await world.tick()

    assert _stalled(world).reason == "ProvisioningTimeout"


async def test_what_has_a_name_already_keeps_it() -> None:
    world = World()
    world.cluster.unenforced = "plexsphere-hold"
    await world.tick()
    world.store.clock.advance(LIMIT * 2)

    await world.tick()

    said = find(world.status, ConditionType.RECONCILING)
    assert said is not None
    assert (said.reason, _stalled(world).status) == ("HoldPoliciesMissing", "False")


async def test_a_token_that_ended_names_the_cause_and_not_itself() -> None:
    world = await _provisioning(SERVER)
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = samples.BLUEPRINT.model_copy(
        update={"provisioning_timeout": "24h"}
    )
    _says(world, SERVER, Synced=REFUSED)
    world.store.clock.advance(timedelta(hours=23))
    # A person gave it its time anew, and its token keeps its own end.
    world.raw["spec"]["declaration"]["retry"] = 1
    await _ticked(world)
    world.store.clock.advance(timedelta(hours=2))

    await _ticked(world)

    said = _stalled(world)
    assert (said.status, said.reason) == ("True", "ProvisioningTimeout")
    assert "quota exceeded" in said.message
    assert "token has ended" in said.message


async def test_a_retry_gives_it_its_time_again() -> None:
    world = await _provisioning(SERVER)
    world.store.clock.advance(LIMIT)
    await _ticked(world)
    assert _stalled(world).status == "True"

    world.raw["spec"]["declaration"]["retry"] = 1
    await _ticked(world)
    await _ticked(world)
    assert _stalled(world).status == "False"

    world.store.clock.advance(LIMIT)
    await _ticked(world)
    assert _stalled(world).status == "True"


async def test_at_rest_a_late_one_writes_nothing_though_its_provider_counts_its_calls() -> None:
    world = await _provisioning(SERVER)
    _says(world, SERVER, Synced=("False", "ReconcileError", "refused, RequestID: 1f3a-01"))
    world.store.clock.advance(LIMIT)
    await _ticked(world)
    before = list(world.cluster.journal)

    for number in range(3):
        words = f"refused, RequestID: 9c{number}e-77"
        _says(world, SERVER, Synced=("False", "ReconcileError", words))
        world.store.clock.advance(timedelta(minutes=10))
        await _ticked(world)

    assert world.cluster.journal == before
    assert "1f3a-01" in _stalled(world).message


async def test_it_is_looked_for_seldom_and_boundedly() -> None:
    servers = [SERVER.model_copy(update={"name": f"vm-{number}"}) for number in range(60)]
    world = await _provisioning(*servers)
    world.store.clock.advance(LIMIT)

    assert await _ticked(world) == unready.AGAIN_MIN.total_seconds()
    assert len(world.cluster.looks) == LOOKS_MAX

    world.store.clock.advance(timedelta(days=2))
    assert await _ticked(world) == unready.AGAIN_MAX.total_seconds()


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (
            "right",
            (
                "Server 'vm' of cloud.test/v1 may report the cause, "
                "but the reconciler lacks the right to get it."
            ),
        ),
        ("kind", "Server 'vm' of cloud.test/v1 may report the cause, but its kind is not served."),
    ],
)
async def test_what_cannot_be_read_is_named_and_stops_nothing(taken: str, words: str) -> None:
    world = await _provisioning(SERVER)
    world.cluster.said.clear()
    _says(world, _substrate(world), Ready=("True", "Available", ""))
    if taken == "right":
        world.cluster.forbidden.add((SERVER.api_version, SERVER.kind, "get"))
    else:
        substrate = _substrate(world)
        world.cluster.kinds = {(substrate.api_version, substrate.kind): True}
    world.store.clock.advance(LIMIT)

    await _ticked(world)

    assert words in _stalled(world).message


async def test_what_is_gone_counts_as_looked_at() -> None:
    gone = [SERVER.model_copy(update={"name": f"gone-{number}"}) for number in range(60)]
    world = await _provisioning(*gone)
    for reference in gone:
        del world.cluster.objects[_key(reference)]
    world.store.clock.advance(LIMIT)

    await _ticked(world)

    assert len(world.cluster.looks) == LOOKS_MAX


async def test_what_is_made_of_itself_is_looked_at_for_so_long_and_no_longer() -> None:
    world = await _provisioning(SERVER)
    live = world.cluster.objects[_key(SERVER)]
    world.cluster.objects[_key(SERVER)] = replace(live, below=(SERVER,))
    world.store.clock.advance(LIMIT)

    await _ticked(world)

    assert len(world.cluster.looks) <= DEPTH_MAX + 1
