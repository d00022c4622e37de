"""What a substrate is made of outlives it at times: nothing is Deleted while any of it lives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from function.contract.conditions import ConditionType, ObservedCondition, find
from function.contract.record import SubstrateReference, XRReference
from function.contract.strategy import Phase
from reconciler.app.protection.children import SubstrateChildren
from reconciler.domain.aggregate.children import CHILDREN_MAX, STUCK_S
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.substrates import LiveObject
from tests.fakes.management_cluster import every_role
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import ALIVE, GONE, World

KIND = ("cloud.test/v1", "Machine")
MACHINE = SubstrateReference(api_version=KIND[0], kind=KIND[1], name="vm")
DISK = SubstrateReference(api_version=KIND[0], kind="Disk", name="vm-disk")
FINALIZER = "cloud.test/vm"
EFFECTS_MAX = 34
"""Effects of the longest teardown here, calls that find nothing to do included."""
PATIENCE = timedelta(seconds=STUCK_S + 1)


def _key(reference: SubstrateReference) -> tuple[str, str, str]:
    return reference.api_version, reference.kind, reference.name


def _substrate(world: World) -> SubstrateReference:
    return samples.SUBSTRATE.model_copy(update={"name": world.resource.xr_name})


def _child(world: World, reference: SubstrateReference, **changes: Any) -> None:
    """Make a child of the substrate, as Crossplane would."""
    substrate = _substrate(world)
    live = world.cluster.objects[_key(substrate)]
    controller = XRReference(
        api_version=substrate.api_version, kind=substrate.kind, name=substrate.name, uid=live.uid
    )
    fields: dict[str, Any] = {"uid": f"uid-{reference.name}", "controller": controller}
    world.cluster.objects[_key(reference)] = LiveObject(
        **{"terminating": False, "released": False, **fields, **changes}
    )
    if reference not in live.below:
        world.cluster.objects[_key(substrate)] = replace(live, below=(*live.below, reference))


async def _ready(*children: SubstrateReference) -> World:
    world = World()
    await world.tick_until_quiet()
    for reference in children:
        _child(world, reference)
    world.cluster.composites = {(samples.SUBSTRATE.api_version, samples.SUBSTRATE.kind)}
    world.register()
    await world.tick_until_quiet()
    assert _phase(world) is Phase.READY
    world.cluster.journal.clear()
    return world


def _hang(world: World, reference: SubstrateReference, *finalizers: str) -> None:
    """Let a child hang in its deletion, from now on."""
    live = world.cluster.objects[_key(reference)]
    since = world.store.clock.now()
    world.cluster.objects[_key(reference)] = replace(
        live, terminating=True, finalizers=finalizers, deleting_since=since
    )


def _phase(world: World) -> Phase:
    return world.resource.phase


def _deleted(world: World) -> ObservedCondition:
    said = find(world.status, ConditionType.SUBSTRATE_DELETED)
    assert said is not None
    return said


async def _tick_for(world: World, time: timedelta) -> None:
    await world.tick_until_quiet()
    world.store.clock.advance(time)
    await world.tick_until_quiet()


@pytest.mark.parametrize("xr", [GONE, ALIVE], ids=["xr-gone", "xr-alive"])
async def test_a_record_stays_while_a_child_lives_that_its_substrate_left_behind(
    xr: XRFacts,
) -> None:
    world = await _ready(MACHINE)

    world.delete(xr=xr)
    await world.tick_until_quiet()

    assert _key(_substrate(world)) not in world.cluster.objects
    assert _phase(world) is Phase.DEPROVISIONING
    assert world.finalizer
    assert world.cluster.provider_configs != {}
    del world.cluster.objects[_key(MACHINE)]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED
    assert not world.finalizer


async def test_a_substrate_that_break_glass_takes_before_its_teardown_leaves_no_child_unseen() -> (
    None
):
    world = await _ready(MACHINE)
    del world.cluster.objects[_key(_substrate(world))]

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING
    assert world.finalizer


async def test_children_that_came_after_ready_are_waited_for_too() -> None:
    world = await _ready()
    _child(world, MACHINE)

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING


async def test_a_child_of_a_composite_below_is_a_child() -> None:
    world = await _ready(MACHINE)
    world.cluster.composites.add(KIND)
    live = world.cluster.objects[_key(MACHINE)]
    world.cluster.objects[_key(MACHINE)] = replace(live, below=(DISK,))
    world.cluster.objects[_key(DISK)] = LiveObject(uid="d", terminating=False, released=False)

    world.delete(xr=GONE)
    await world.tick_until_quiet()
    del world.cluster.objects[_key(MACHINE)]
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(DISK)]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED


async def _nested(*parts: SubstrateReference) -> World:
    """Return a Ready world whose machine is a composite, of parts that came with it."""
    world = await _ready(MACHINE)
    world.cluster.composites.add(KIND)
    machine = world.cluster.objects[_key(MACHINE)]
    world.cluster.objects[_key(MACHINE)] = replace(machine, below=parts)
    for reference in parts:
        _part(world, reference, uid=f"uid-{reference.name}")
    return world


def _part(world: World, reference: SubstrateReference, *, uid: str) -> None:
    """Make a part of the machine, which the machine controls."""
    controller = XRReference(
        api_version=KIND[0],
        kind=KIND[1],
        name=MACHINE.name,
        uid=world.cluster.objects[_key(MACHINE)].uid,
    )
    world.cluster.objects[_key(reference)] = LiveObject(
        uid=uid, terminating=False, released=False, controller=controller
    )


async def _holds(world: World, reference: SubstrateReference) -> None:
    """Assert that a part, and nothing else, keeps the world from Deleted."""
    await world.tick_until_quiet()
    world.cluster.objects.pop(_key(MACHINE), None)
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(reference)]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED


def _foreground(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the substrate stay, terminating, after it was deleted."""
    substrate = _key(_substrate(world))

    async def deleted(*_: object, **__: object) -> None:
        live = world.cluster.objects[substrate]
        world.cluster.objects[substrate] = replace(live, terminating=True)

    monkeypatch.setattr(world.cluster, "delete_object", deleted)


async def test_what_a_nested_composite_controls_is_a_child_however_late_it_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _nested()
    _foreground(world, monkeypatch)
    world.delete(xr=GONE)
    await world.tick_until_quiet()
    machine = world.cluster.objects[_key(MACHINE)]
    world.cluster.objects[_key(MACHINE)] = replace(machine, below=(DISK,))
    _part(world, DISK, uid="late")
    await world.tick_until_quiet()

    del world.cluster.objects[_key(_substrate(world))]

    assert "late" in [child.uid for child in world.resource.children]
    await _holds(world, DISK)


async def test_a_part_made_anew_under_its_nested_composite_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _nested(DISK)
    _foreground(world, monkeypatch)
    world.delete(xr=GONE)
    await world.tick_until_quiet()
    _part(world, DISK, uid="made-anew")
    await world.tick_until_quiet()

    del world.cluster.objects[_key(_substrate(world))]

    await _holds(world, DISK)


def _in(version: str, reference: SubstrateReference = MACHINE) -> SubstrateReference:
    return reference.model_copy(update={"api_version": f"cloud.test/{version}"})


def _moves_to_v2(world: World, *references: SubstrateReference) -> None:
    """Let the provider drop v1, after it served v2 and the substrate named that."""
    kinds = [(kind.api_version, kind.kind) for kind in (*references, samples.SUBSTRATE)]
    xr = (samples.XR["apiVersion"], samples.XR["kind"])
    world.cluster.kinds = dict.fromkeys([xr, *kinds], True)
    for reference in references:
        live = world.cluster.objects.pop(_key(_in("v1", reference)))
        world.cluster.objects[_key(reference)] = live
    substrate = _key(_substrate(world))
    live = world.cluster.objects[substrate]
    world.cluster.objects[substrate] = replace(live, below=references)


async def test_a_child_is_followed_to_the_version_it_is_named_in_now() -> None:
    world = await _ready(MACHINE)
    _moves_to_v2(world, _in("v2"))

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    (child,) = world.resource.children
    assert (child.reference, child.uid) == (_in("v2"), "uid-vm")
    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(_in("v2"))]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED


async def test_a_child_that_is_named_no_more_is_looked_for_in_its_groups_version() -> None:
    world = await _ready(MACHINE, DISK)
    disk = _in("v2", DISK)
    _moves_to_v2(world, _in("v2"), disk)
    substrate = _key(_substrate(world))
    live = world.cluster.objects[substrate]
    world.cluster.objects[substrate] = replace(live, below=(_in("v2"),))

    world.delete(xr=GONE)
    await world.tick_until_quiet()
    del world.cluster.objects[_key(_in("v2"))]
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(disk)]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED


async def test_a_child_whose_substrate_went_first_is_looked_for_in_the_version_that_is_served() -> (
    None
):
    world = await _ready(MACHINE)
    _moves_to_v2(world, _in("v2"))
    del world.cluster.objects[_key(_substrate(world))]

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(_in("v2"))]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED


async def test_what_another_substrate_of_its_name_composes_is_taken_in_at_once() -> None:
    world = await _ready(MACHINE)
    substrate = _key(_substrate(world))
    world.cluster.objects[substrate] = replace(world.cluster.objects[substrate], uid="another")
    _child(world, DISK)

    children = SubstrateChildren(every_role(world.cluster), world.store.clock)
    found = await children.joined(world.resource, world.cluster.objects[substrate])

    assert [child.uid for child in found] == ["uid-vm", "uid-vm-disk"]


async def test_a_substrate_is_taken_down_by_the_version_that_is_served() -> None:
    world = await _ready()
    before = _substrate(world)
    moved = before.model_copy(update={"api_version": f"{before.api_version}9"})
    world.cluster.objects[_key(moved)] = world.cluster.objects.pop(_key(before))
    xr = (samples.XR["apiVersion"], samples.XR["kind"])
    world.cluster.kinds = dict.fromkeys([xr, (moved.api_version, moved.kind)], True)

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.protected[0].reference == moved
    assert _phase(world) is Phase.DELETED


async def test_a_stuck_child_is_named_with_its_finalizers_and_since_when() -> None:
    world = await _ready(MACHINE, DISK)
    _hang(world, MACHINE, FINALIZER, "example.org/hold")
    del world.cluster.objects[_key(DISK)]
    world.delete(xr=GONE)

    await _tick_for(world, PATIENCE)

    said = _deleted(world)
    assert (said.status, said.reason) == ("False", "ChildStuck")
    for part in ("Machine", "vm", KIND[0], FINALIZER, "example.org/hold", "2026-11-21T12:00:"):
        assert part in said.message
    assert "Disk" not in said.message


async def test_what_is_said_of_a_stuck_child_does_not_change_with_time() -> None:
    world = await _ready(MACHINE)
    _hang(world, MACHINE, FINALIZER)
    world.delete(xr=GONE)
    await _tick_for(world, PATIENCE)
    before = list(world.cluster.journal)

    await _tick_for(world, timedelta(hours=3))

    assert world.cluster.journal == before


async def test_a_stuck_child_is_named_while_its_substrate_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _ready(MACHINE)
    substrate = _key(_substrate(world))

    async def foreground(*_: object, **__: object) -> None:
        live = world.cluster.objects[substrate]
        world.cluster.objects[substrate] = replace(live, terminating=True)

    monkeypatch.setattr(world.cluster, "delete_object", foreground)
    _hang(world, MACHINE, FINALIZER)
    world.delete(xr=GONE)

    await _tick_for(world, PATIENCE)

    assert (_deleted(world).reason, FINALIZER in _deleted(world).message) == ("ChildStuck", True)


async def test_a_child_that_nobody_deletes_is_named_as_such() -> None:
    world = await _ready(MACHINE)
    world.delete(xr=GONE)

    await _tick_for(world, PATIENCE)

    assert _deleted(world).reason == "ChildStuck"
    assert "is not being deleted" in _deleted(world).message


async def test_of_many_stuck_children_three_are_named() -> None:
    machines = [MACHINE.model_copy(update={"name": f"vm-{number}"}) for number in range(5)]
    world = await _ready(*machines)
    for reference in machines:
        _hang(world, reference, FINALIZER)
    world.delete(xr=GONE)

    await _tick_for(world, PATIENCE)

    message = _deleted(world).message
    assert [item.name in message for item in machines] == [True, True, True, False, False]
    assert "Other objects remain" in message


async def test_another_object_under_a_childs_name_holds_nothing() -> None:
    world = await _ready(MACHINE)
    other = XRReference(api_version="o/v1", kind="Other", name="o", uid="somebody else")
    world.delete(xr=GONE)
    await world.tick_until_quiet()
    world.cluster.objects[_key(MACHINE)] = LiveObject(
        uid="made-anew", terminating=False, released=False, controller=other
    )

    await world.tick_until_quiet()

    assert _phase(world) is Phase.DELETED


async def test_a_child_that_was_made_anew_for_the_same_substrate_is_waited_for() -> None:
    world = await _ready(MACHINE)
    _child(world, MACHINE, uid="made-anew")

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING


async def test_a_child_whose_owner_was_taken_off_is_waited_for() -> None:
    world = await _ready(MACHINE)
    live = world.cluster.objects[_key(MACHINE)]
    world.cluster.objects[_key(MACHINE)] = replace(live, controller=None)

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING


async def test_a_child_whose_kind_is_served_no_more_is_not_taken_for_gone() -> None:
    world = await _ready(MACHINE)
    world.cluster.kinds = {
        (samples.XR["apiVersion"], samples.XR["kind"]): True,
        (samples.SUBSTRATE.api_version, samples.SUBSTRATE.kind): True,
    }

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.finalizer
    assert _deleted(world).reason == "KindNotServed"
    assert KIND[0] in _deleted(world).message


async def test_a_child_that_may_not_be_read_is_believed_gone_with_its_substrate() -> None:
    world = await _ready(MACHINE)
    world.cluster.forbidden.add((*KIND, "get"))

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DELETED


async def test_that_a_child_may_not_be_read_is_said_while_its_substrate_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await _ready(MACHINE)
    world.cluster.forbidden.add((*KIND, "get"))

    async def hanging(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(world.cluster, "delete_object", hanging)
    world.delete(xr=GONE)

    await _tick_for(world, PATIENCE)

    assert _deleted(world).reason == "RightsMissing"
    assert "Machine" in _deleted(world).message


async def test_no_more_children_are_remembered_than_fit() -> None:
    machines = [
        MACHINE.model_copy(update={"name": f"vm-{number}"}) for number in range(CHILDREN_MAX + 1)
    ]
    world = await _ready(*machines)

    assert len(world.resource.children) == CHILDREN_MAX


def _churns(world: World, *, alive: bool) -> None:
    """Let the substrate name one object beside those that fill the list, and no other."""
    substrate = _key(_substrate(world))
    live = world.cluster.objects[substrate]
    if not alive:
        for reference in live.below:
            del world.cluster.objects[_key(reference)]
    world.cluster.objects[substrate] = replace(live, below=())
    _child(world, MACHINE)


async def test_children_that_are_gone_and_named_no_more_make_room() -> None:
    full = [MACHINE.model_copy(update={"name": f"vm-{number}"}) for number in range(CHILDREN_MAX)]
    world = await _ready(*full)
    _churns(world, alive=False)

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert [child.reference for child in world.resource.children] == [MACHINE]
    assert _phase(world) is Phase.DEPROVISIONING


async def test_children_that_live_make_no_room() -> None:
    full = [MACHINE.model_copy(update={"name": f"vm-{number}"}) for number in range(CHILDREN_MAX)]
    world = await _ready(*full)
    _churns(world, alive=True)

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert [child.reference for child in world.resource.children] == full


@pytest.mark.parametrize("xr", [GONE, ALIVE], ids=["xr-gone", "xr-alive"])
@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_forgets_no_child(xr: XRFacts, after: int) -> None:
    world = await _ready()
    _child(world, MACHINE)
    world.fuse.burnt, world.fuse.after = 0, after

    world.delete(xr=xr)
    await world.tick_until_quiet()

    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(MACHINE)]
    await world.tick_until_quiet()
    assert _phase(world) is Phase.DELETED
    assert not world.finalizer


@pytest.mark.parametrize("xr", [GONE, ALIVE], ids=["xr-gone", "xr-alive"])
async def test_the_crash_cases_cover_every_effect(xr: XRFacts) -> None:
    world = await _ready()
    _child(world, MACHINE)
    world.fuse.burnt = 0

    world.delete(xr=xr)
    await world.tick_until_quiet()
    del world.cluster.objects[_key(MACHINE)]
    await world.tick_until_quiet()

    assert 10 <= world.fuse.burnt <= EFFECTS_MAX


async def test_an_aggregate_whose_record_vanished_waits_for_its_children_too() -> None:
    world = await _ready(MACHINE)
    world.cluster.xr = GONE

    for _ in range(5):
        await world.teardown.run_missing(world.resource)
    assert _phase(world) is Phase.DEPROVISIONING
    del world.cluster.objects[_key(MACHINE)]
    await world.teardown.run_missing(world.resource)

    assert _phase(world) is Phase.DELETED
