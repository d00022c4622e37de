"""What is remembered of nodes: it changes no answer and holds no token."""

from __future__ import annotations

import base64
import copy
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from function import fn
from function.cache import Nodes
from function.model.call import ComposedNode, Copied
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server
from tests.unit.function.hostile.laws import CANARIES

SERVERS = ("server-a", "server-b", "server-c", "server-d")


def pool(servers: Sequence[str] = SERVERS, **fields: Any) -> World:
    """Enrolled nodes that hold a network."""
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
        world.say(name, node=node, phase="Ready")
    world.step()
    return world


POOL = pool()


def wire(answer: fnv1.RunFunctionResponse) -> bytes:
    return bytes(answer.SerializeToString(deterministic=True))


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


EDITS: list[Callable[[World, str], None]] = [
    stamped, unlabelled, terminated, moved, bare, unready, drained, filled, resized, renamed,
    unreadable, released, retried, relabelled, reborn, elsewhere, standalone, forgotten, unheld,
    networked, clashing, gone, told, silenced, undated, stalled,
]  # fmt: skip


def meets(world: World, nodes: Nodes) -> None:
    """Cold and warm answers are equal, to the byte, before and after lookups."""
    found: dict[str, Any] = {}
    for _ in range(3):
        request = world.request(found)
        cold = fn.run(request)
        assert wire(fn.run(request, nodes)) == wire(cold)
        asked = cold.requirements.resources.items()
        found = {name: world._look_up(one.kind, one.match_name) for name, one in asked}


@settings(max_examples=40, deadline=None)
@examples(st.lists(st.tuples(st.sampled_from(EDITS), st.sampled_from(SERVERS)), max_size=4))
def test_whatever_changed_a_warm_answer_is_the_cold_one(
    edits: list[tuple[Callable[[World, str], None], str]],
) -> None:
    world, nodes = copy.deepcopy(POOL), Nodes()
    meets(world, nodes)
    for edit, name in edits:
        try:
            edit(world, name)
        except KeyError:
            continue
        meets(world, nodes)


@pytest.mark.parametrize("edit", EDITS)
def test_a_node_that_changed_is_composed_anew(edit: Callable[[World, str], None]) -> None:
    world, nodes = copy.deepcopy(POOL), Nodes()
    meets(world, nodes)

    edit(world, SERVERS[1])

    meets(world, nodes)
    meets(POOL, nodes)


def test_settled_nodes_are_remembered_and_others_stay_so_when_one_changes() -> None:
    world, nodes = copy.deepcopy(POOL), Nodes()
    meets(world, nodes)
    assert len(nodes) == len(SERVERS)

    resized(world, SERVERS[0])
    meets(world, nodes)

    assert len(nodes) == len(SERVERS) + 1


@pytest.mark.parametrize(
    "paths", [{}, {"userDataBase64": "spec.forProvider.data"}, {"userData": "spec.x[0].data"}]
)
def test_nothing_that_is_remembered_holds_the_token(paths: dict[str, str]) -> None:
    world, nodes = pool(paths=paths), Nodes()

    answer = fn.run(world.request())
    meets(world, nodes)

    assert len(nodes) == len(SERVERS)
    assert wire(fn.run(world.request(), nodes)) == wire(answer)
    assert any(form in wire(answer) for form in CANARIES)
    for node in nodes._nodes.values():
        copies = [one for one in node.resources.values() if isinstance(one, Copied)]
        assert len(copies) == 2
        held = repr(node) + repr([one.data for one in copies])
        assert not any(form.decode() in held for form in CANARIES)


def test_what_nobody_reads_changes_nothing() -> None:
    world, nodes = pool(SERVERS[:1]), Nodes()
    for version in range(5):
        metadata(world, f"record-{SERVERS[0]}")["resourceVersion"] = str(version)
        world.objects[SERVERS[0]]["status"]["atProvider"] = {"seconds": version}
        meets(world, nodes)

    assert len(nodes) == 1


@pytest.mark.parametrize("kind", ["Admitted", "NodeRegistered", "Stalled", "Reconciling"])
@pytest.mark.parametrize("phase", ["Ready", "Failed"])
def test_what_a_condition_says_is_told_on_and_nothing_is_composed_anew(
    kind: str, phase: str
) -> None:
    world, nodes = pool(SERVERS[:1]), Nodes()
    sizes = []
    for text in (
        "one",
        f"psb_{'b' * 30} and two",
        " three ",
        "4" * 2000,
        "ü" * 900,
        "gz+b64",
        "ü" * 901,
        "one",
    ):
        said = [given.condition(kind, "False", "Because", text)]
        world.say(SERVERS[0], phase=phase, conditions=said)
        meets(world, nodes)
        sizes.append(nodes.size_bytes)

    assert len(nodes) == 1
    assert sizes[0] == sizes[-1]
    assert sizes[0] == min(sizes)
    assert max(sizes) <= sizes[0] + 3 * 4 * 1024


STOOD: list[dict[str, Any]] = [
    {"status": given.status(substrate="Absent"), "substrate": given.substrate()},
    {"status": given.status(substrate="Absent")},
    {"status": given.status()},
    {"status": {}},
]


@pytest.mark.parametrize("kind", ["Admitted", "NodeRegistered", "Stalled"])
@pytest.mark.parametrize("said", ["True", "False", "Unknown"])
@pytest.mark.parametrize("life", STOOD)
def test_what_is_told_on_is_what_is_said_now(life: dict[str, Any], said: str, kind: str) -> None:
    nodes = Nodes()
    for text in ("cause one", "cause two"):
        condition = given.condition(kind, said, "Because", text)
        resources = {"record": given.record({**life["status"], "conditions": [condition]})}
        if "substrate" in life:
            resources["substrate"] = life["substrate"]
        request = given.request(
            resources=resources, found=given.required(token=given.secret(), substrate=None)
        )

        assert wire(fn.run(request, nodes)) == wire(fn.run(request))


LIVES: list[dict[str, Any]] = [
    {"status": given.status()},
    {"status": given.status(phase="Ready"), "substrate": given.substrate(given.READY)},
    {"status": given.status(), "substrate": given.substrate()},
    {"status": given.status(substrate="Absent"), "substrate": given.substrate()},
    {"status": {}},
]


@pytest.mark.parametrize("life", LIVES)
def test_a_declared_node_is_remembered_too_and_holds_no_token(life: dict[str, Any]) -> None:
    nodes = Nodes()
    for turn in range(3):
        token = minted(f"{turn}")
        resources = {"record": given.record(life["status"])}
        if "substrate" in life:
            resources["substrate"] = life["substrate"]
        found = given.required(token=given.secret(token), substrate=None)
        request = given.request(resources=resources, found=found)

        assert wire(fn.run(request, nodes)) == wire(fn.run(request))

        held = repr([_texts(node) for node in nodes._nodes.values()])
        assert token not in held
        assert not any(form.decode() in held for form in CANARIES)
    assert len(nodes) == 1


def test_a_declared_node_of_another_blueprint_is_composed_anew() -> None:
    nodes = Nodes()
    for version in ("v1alpha1", "v1alpha2", "v1alpha1"):
        blueprint = given.blueprint()
        blueprint["spec"]["version"] = version
        found = given.required(token=given.secret(), substrate=None, blueprint=blueprint)
        request = given.request(resources={"record": given.record(given.status())}, found=found)

        assert wire(fn.run(request, nodes)) == wire(fn.run(request))
    assert len(nodes) == 2


def test_what_repeats_the_token_elsewhere_is_not_remembered() -> None:
    world, nodes = copy.deepcopy(POOL), Nodes()
    world.given[SERVERS[0]]["spec"]["note"] = given.TOKEN

    meets(world, nodes)

    assert len(nodes) == len(SERVERS) - 1


def minted(seed: str) -> str:
    """A token of ours; equal seeds give equal ones."""
    digest = hashlib.sha256(seed.encode()).hexdigest()
    text = digest.translate(str.maketrans("0189", "wxyz"))
    return f"psb_prod_{'a' * 26}_node_{text[:32]}"


STRATEGIES: list[dict[str, Any]] = [
    {},
    {"paths": {"userDataBase64": "spec.forProvider.data"}},
    {
        "injectionStrategy": "helm-values",
        "paths": {
            "bootstrapToken": "spec.values.token",
            "apiUrl": "spec.values.api",
            "plexdImage": "spec.values.image",
        },
    },
    {"injectionStrategy": "provider-secret", "paths": {"bootstrapToken": "spec.token"}},
    {"meshRole": "standalone"},
]


def expected(fields: dict[str, Any]) -> World:
    """Accepted nodes whose machines are still to be made."""
    world = World(entry("server-*", **fields), **{name: server() for name in SERVERS})
    world.step()
    for name in SERVERS:
        world.accept(name)
    return world


def secrets(**tokens: str) -> dict[str, Any]:
    absent = {f"substrate/{name}": None for name in SERVERS}
    return absent | {f"token/{name}": given.secret(text) for name, text in tokens.items()}


@pytest.mark.parametrize("fields", STRATEGIES)
def test_a_machine_that_is_made_gets_its_own_token_and_none_is_remembered(
    fields: dict[str, Any],
) -> None:
    world, nodes = expected(fields), Nodes()
    for turn in range(3):
        tokens = {name: minted(f"{turn} {name}") for name in SERVERS}
        request = world.request(secrets(**tokens))

        assert wire(fn.run(request, nodes)) == wire(fn.run(request))

        held = repr([(node, _texts(node)) for node in nodes._nodes.values()])
        for text in tokens.values():
            assert text not in held
            assert base64.b64encode(text.encode()).decode().rstrip("=") not in held
    assert len(nodes) == len(SERVERS)


def _texts(node: ComposedNode) -> list[object]:
    copies = [one for one in node.resources.values() if isinstance(one, Copied)]
    return [(one.data, one.carried, one.token) for one in copies]


@settings(max_examples=60, deadline=None)
@examples(
    st.sampled_from(STRATEGIES),
    st.lists(
        st.one_of(
            st.text(st.characters(codec="ascii"), max_size=80),
            st.from_regex(r"psb_[A-Za-z0-9_-]{16,40}", fullmatch=True),
            st.sampled_from(["yes", "psb_" + "0" * 20, "1e3", "psb_" + "a" * 400, "x'y", "é"]),
        ),
        min_size=2,
        max_size=4,
    ),
)
def test_whatever_the_token_a_warm_answer_is_the_cold_one(
    fields: dict[str, Any], texts: list[str]
) -> None:
    world, nodes = expected(fields), Nodes()
    for text in texts:
        request = world.request(secrets(**dict.fromkeys(SERVERS[:2], text)))

        assert wire(fn.run(request, nodes)) == wire(fn.run(request))


def test_a_token_that_stands_elsewhere_too_keeps_its_node_from_being_remembered() -> None:
    world, nodes = expected({}), Nodes()
    token = minted("one")
    world.given[SERVERS[0]]["spec"]["note"] = f"about {token}"

    fn.run(world.request(secrets(**dict.fromkeys(SERVERS, token))), nodes)

    assert len(nodes) == len(SERVERS) - 1


@pytest.mark.parametrize(
    "nodes", [Nodes(entries_max=2), Nodes(bytes_max=2 * 7 * 1024)], ids=["entries", "bytes"]
)
def test_the_memory_is_bounded_and_forgets_the_oldest(nodes: Nodes) -> None:
    world = copy.deepcopy(POOL)
    for size in range(3):
        for name in SERVERS:
            world.given[name]["spec"]["forProvider"]["size"] = size
        meets(world, nodes)

    assert 1 <= len(nodes) <= 2
    assert nodes.size_bytes <= 2 * 7 * 1024
