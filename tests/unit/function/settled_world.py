"""Nodes in which nothing changes, and edits that change something: worlds for the cache's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.cache import SettledNodes
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server
from tests.unit.function.hostile.calls import wire

SERVERS = ("server-a", "server-b", "server-c", "server-d")
SPENT: dict[str, Any] = {"secretRef": {"name": "s"}, "generation": 1, "state": "Consumed"}
"""The bootstrap of a node that registered."""


def pool(servers: Sequence[str] = SERVERS, **fields: Any) -> World:
    """Registered nodes that hold a network."""
    network = {"apiVersion": "hcloud.example.org/v1alpha1", "kind": "Network", "spec": {}}
    world = World(
        entry("server-*", hold=["network"], **fields),
        network=network,
        **{name: server() for name in servers},
    )
    world.step()
    for name in servers:
        world.accept(name)
    world.step()
    for name in servers:
        world.objects[name]["status"] = {"conditions": [given.READY]}
        node = {"id": name, "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
        world.say(name, node=node, phase="Ready", bootstrap=SPENT)
    world.step()
    return world


POOL = pool()


def kept(**bounds: int) -> SettledNodes:
    return SettledNodes(key=b"k" * 32, **bounds)


def meets(world: World, nodes: SettledNodes) -> None:
    """Cold and warm answers are equal, to the byte, before and after lookups."""
    found: dict[str, Any] = {}
    for _ in range(3):
        request = world.request(found)
        cold = fn.run(request)
        assert wire(fn.run(request, nodes)) == wire(cold)
        asked = cold.requirements.resources.items()
        found = {name: world._look_up(one.kind, one.match_name) for name, one in asked}


def each_meets(requests: list[fnv1.RunFunctionRequest]) -> SettledNodes:
    """Cold and warm answers to a sequence are equal, to the byte."""
    nodes = kept()
    for request in requests:
        assert wire(fn.run(request, nodes)) == wire(fn.run(request))
    return nodes


def metadata(world: World, name: str) -> dict[str, Any]:
    found: dict[str, Any] = world.objects[name]["metadata"]
    return found


def stamped(world: World, name: str) -> None:
    metadata(world, name)["annotations"].clear()


def unlabelled(world: World, name: str) -> None:
    metadata(world, name)["labels"].clear()


def terminated(world: World, name: str) -> None:
    metadata(world, f"record-{name}")["deletionTimestamp"] = "2026-01-01T00:00:00Z"


def moved(world: World, name: str) -> None:
    world.objects[name]["spec"]["forProvider"]["userData"] += "# another"


def bare(world: World, name: str) -> None:
    world.objects[name]["spec"]["forProvider"].pop("userData")


def unready(world: World, name: str) -> None:
    world.objects[name]["status"] = {}


def drained(world: World, name: str) -> None:
    world.given.pop(name, None)


def filled(world: World, name: str) -> None:
    if name in world.given:
        world.given[name]["spec"]["forProvider"]["userData"] = "mine"


def resized(world: World, name: str) -> None:
    if name in world.given:
        world.given[name]["spec"]["forProvider"]["size"] = 2


def renamed(world: World, name: str) -> None:
    world.say(name, phase="Failed", xrName=f"pr-{given.ID}")


def unreadable(world: World, name: str) -> None:
    world.say(name, phase="Elsewhere")


def released(world: World, name: str) -> None:
    world.say(name, substrate="Absent")


def retried(world: World, _: str) -> None:
    world.xr["spec"]["retry"] = world.xr["spec"].get("retry", 0) + 1


def relabelled(world: World, name: str) -> None:
    world.xr["spec"]["labels"] = {"team": name}


def reborn(world: World, _: str) -> None:
    world.xr["metadata"]["uid"] += "x"


def elsewhere(world: World, _: str) -> None:
    world.entries[0] = {**world.entries[0], "paths": {"tags": "spec.forProvider.tags"}}


def standalone(world: World, name: str) -> None:
    world.entries.append({**world.entries[0], "name": name, "meshRole": "standalone"})
    world.entries[1:] = {one["name"]: one for one in world.entries[1:]}.values()


def forgotten(world: World, name: str) -> None:
    world.entries[0] = {**world.entries[0], "name": f"{name}*"}


def unheld(world: World, _: str) -> None:
    world.entries[0] = {**world.entries[0], "hold": []}


def told(world: World, name: str) -> None:
    said = [
        given.condition("Admitted", "True", "Admitted", f"as {name} is"),
        given.condition("Reconciling", "True", "Progressing", f"about {name}"),
        given.condition("NodeRegistered", "False", "Elsewhere", f"{name}: {given.TOKEN}"),
    ]
    world.say(name, conditions=said)


def silenced(world: World, name: str) -> None:
    said = [given.condition("Admitted", "True", "Admitted", "")]
    world.say(name, conditions=[*said, given.condition("NodeRegistered", "True", "Told", " ")])


def undated(world: World, name: str) -> None:
    said = given.condition("NodeRegistered", "False", "Elsewhere", f"{name} is late")
    world.say(name, conditions=[{**said, "lastTransitionTime": None}])


def stalled(world: World, name: str) -> None:
    said = [given.condition("Stalled", "True", "SubstrateLost", f"{name}: psb_{'a' * 30}")]
    world.say(name, phase="Failed", conditions=said)


def networked(world: World, name: str) -> None:
    world.objects["network"]["metadata"]["name"] = f"network-of-{name}"


def clashing(world: World, name: str) -> None:
    world.given[f"record-{name}"] = server()


def gone(world: World, name: str) -> None:
    world.objects.pop(f"record-{name}", None)


def reissued(world: World, name: str) -> None:
    world.say(name, bootstrap={**SPENT, "generation": 2, "state": "Issued"})


def unregistered(world: World, name: str) -> None:
    world.objects[f"record-{name}"]["status"].pop("node", None)


EDITS: list[Callable[[World, str], None]] = [
    stamped, unlabelled, terminated, moved, bare, unready, drained, filled, resized, renamed,
    unreadable, released, retried, relabelled, reborn, elsewhere, standalone, forgotten, unheld,
    networked, clashing, gone, told, silenced, undated, stalled,
    reissued, unregistered,
]  # fmt: skip
