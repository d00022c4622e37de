"""What is kept of settled nodes: it changes no answer, holds no live token and is bounded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from function import fn
from function.cache import SettledNodes
from function.contract.errors import ContractError
from tests.unit.function import given
from tests.unit.function.enrol_world import World
from tests.unit.function.settled_world import (
    EDITS,
    POOL,
    SERVERS,
    SPENT,
    bare,
    drained,
    each_meets,
    kept,
    meets,
    metadata,
    moved,
    pool,
    reissued,
    resized,
    stamped,
    unreadable,
    unregistered,
)
from tests.unit.function.test_token_lifetime import expected, minted, secrets

NODE = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}


@settings(max_examples=40, deadline=None)
@examples(st.lists(st.tuples(st.sampled_from(EDITS), st.sampled_from(SERVERS)), max_size=4))
def test_whatever_changed_a_warm_answer_is_the_cold_one(
    edits: list[tuple[Callable[[World, str], None], str]],
) -> None:
    world, nodes = copy.deepcopy(POOL), kept()
    meets(world, nodes)
    for edit, name in edits:
        try:
            edit(world, name)
        except KeyError:
            continue
        meets(world, nodes)


@pytest.mark.parametrize("edit", EDITS)
def test_a_node_that_changed_is_composed_anew(edit: Callable[[World, str], None]) -> None:
    world, nodes = copy.deepcopy(POOL), kept()
    meets(world, nodes)

    edit(world, SERVERS[1])

    meets(world, nodes)
    meets(POOL, nodes)


def test_settled_nodes_are_kept_and_others_stay_so_when_one_changes() -> None:
    world, nodes = copy.deepcopy(POOL), kept()
    meets(world, nodes)
    assert len(nodes) == len(SERVERS)

    resized(world, SERVERS[0])
    meets(world, nodes)

    assert len(nodes) == len(SERVERS) + 1


def test_a_standalone_resource_is_settled_once_it_is_there() -> None:
    assert len(each_meets([pool(meshRole="standalone").request()] * 2)) == len(SERVERS)


def test_what_nobody_reads_changes_nothing() -> None:
    world, nodes = pool(SERVERS[:1]), kept()
    for version in range(5):
        metadata(world, f"record-{SERVERS[0]}")["resourceVersion"] = str(version)
        world.objects[SERVERS[0]]["status"]["atProvider"] = {"seconds": version}
        world.xr["status"] = {"conditions": [given.condition("Synced", "True", f"R{version}")]}
        meets(world, nodes)

    assert len(nodes) == 1


@pytest.mark.parametrize("edit", [drained, unreadable, reissued, unregistered, bare])
def test_a_node_that_is_not_settled_is_not_kept(edit: Callable[[World, str], None]) -> None:
    world = pool(SERVERS[:1])
    edit(world, SERVERS[0])

    assert len(each_meets([world.request()] * 2)) == 0


def test_no_node_is_kept_for_which_a_token_came() -> None:
    found = {f"token/{SERVERS[0]}": given.secret()}

    assert len(each_meets([POOL.request(found)] * 2)) == len(SERVERS) - 1


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


@pytest.mark.parametrize("fields", STRATEGIES)
def test_nothing_is_kept_of_a_machine_that_is_being_made(fields: dict[str, Any]) -> None:
    world = expected(**fields)
    requests = [
        world.request(secrets(**{name: minted(f"{turn} {name}") for name in SERVERS}))
        for turn in range(2)
    ]

    assert len(each_meets(requests * 2)) == 0


SETTLED = given.status(phase="Ready", node=NODE, bootstrap=SPENT)
LIVES: list[tuple[dict[str, Any], bool, int]] = [
    (given.status(), False, 0),
    (given.status(), True, 0),
    (given.status(phase="Ready", node=NODE), True, 0),
    (SETTLED, False, 0),
    (SETTLED, True, 1),
]


@pytest.mark.parametrize(("status", "is_there", "count"), LIVES)
def test_a_declared_node_is_kept_once_it_is_settled(
    status: dict[str, Any], is_there: bool, count: int
) -> None:
    resources = {"record": given.record(status)}
    if is_there:
        resources["substrate"] = given.substrate(given.READY)

    assert len(each_meets([given.request(resources=resources)] * 3)) == count


def _settled(**fields: Any) -> fnv1.RunFunctionRequest:
    resources = {"record": given.record(SETTLED), "substrate": given.substrate(given.READY)}
    return given.request(resources=resources, **fields)


def test_a_declared_node_of_another_blueprint_is_composed_anew() -> None:
    requests = []
    for version in ("v1alpha1", "v1alpha2", "v1alpha1"):
        blueprint = given.blueprint()
        blueprint["spec"]["version"] = version
        requests.append(_settled(found=given.required(blueprint=blueprint)))

    assert len(each_meets(requests * 2)) == 2


def test_what_another_step_composed_under_our_name_is_not_kept() -> None:
    desired = {"resources": {"substrate": {"resource": {"spec": {"parameters": {"a": -0.0}}}}}}

    assert len(each_meets([_settled(desired=desired)] * 2)) == 0


def test_what_an_earlier_step_says_of_readiness_is_told_on() -> None:
    requests = []
    for ready in (fnv1.READY_TRUE, fnv1.READY_FALSE, fnv1.READY_TRUE):
        request = pool(SERVERS[:1]).request()
        request.desired.resources[SERVERS[0]].ready = ready
        requests.append(request)

    each_meets(requests * 3)


def test_an_empty_object_is_not_taken_for_an_absent_one() -> None:
    record = {"record": given.record(SETTLED)}
    nodes = each_meets([_settled()] * 2)

    with pytest.raises(ContractError, match="observed resource 'substrate'"):
        fn.run(given.request(resources={**record, "substrate": {}}), nodes)


@pytest.mark.parametrize("edit", [stamped, moved])
def test_what_falls_back_to_the_whole_object_is_composed_every_time(
    edit: Callable[[World, str], None],
) -> None:
    world = pool(SERVERS[:1], paths={"userData": "spec.forProvider.userData"})
    edit(world, SERVERS[0])
    before = world.request()
    mine = world.objects[SERVERS[0]]["metadata"]["managedFields"][0]
    mine["fieldsV1"] = {"f:spec": {"f:forProvider": {"f:image": {}}}, "f:metadata": {}}

    each_meets([before, world.request(), before] * 2)


@pytest.mark.parametrize(
    "nodes", [kept(entries_max=2), kept(bytes_max=2 * 10 * 1024)], ids=["entries", "bytes"]
)
def test_what_is_kept_is_bounded_and_the_least_used_goes_first(nodes: SettledNodes) -> None:
    world = copy.deepcopy(POOL)
    for size in range(3):
        for name in SERVERS:
            world.given[name]["spec"]["forProvider"]["size"] = size
        meets(world, nodes)

    assert 1 <= len(nodes) <= 2
    assert nodes.size_bytes <= 2 * 10 * 1024


def test_a_node_is_kept_from_the_second_time_that_it_is_met() -> None:
    assert len(each_meets([_settled()])) == 0
    assert len(each_meets([_settled()] * 2)) == 1


def test_how_many_nodes_were_met_is_bounded_too() -> None:
    nodes = kept(entries_max=1)
    for digest in (b"a", b"b", b"c", b"d", b"e"):
        assert not nodes.met(digest)

    assert nodes.met(b"b")
    assert not nodes.met(b"a")


def test_one_part_is_told_from_the_next_whatever_they_hold() -> None:
    nodes = kept()

    assert nodes.digest([b"ab", b"c"]) != nodes.digest([b"a", b"bc"])
    assert nodes.digest([b"a", b""]) != nodes.digest([b"a"])


def test_a_digest_says_nothing_without_its_key() -> None:
    other = SettledNodes(key=b"o" * 32)

    assert kept().digest([b"a"]) != other.digest([b"a"])
