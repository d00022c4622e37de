"""Requests that are huge, deep, crowded or say a thing twice."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format, struct_pb2
from google.protobuf.message import DecodeError

from function import fn
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server
from tests.unit.function.hostile import bases, laws, sites
from tests.unit.function.hostile.calls import call, wire

MEBIBYTE = 1024 * 1024
HUGE = "x" * (3 * MEBIBYTE)
DEEPEST = 31
"""Objects within each other, below an object's first field, that protobuf's recursion limit
of 100 lets through: each costs a Struct, a map entry and a Value."""


def nested(levels: int) -> struct_pb2.Value:
    made = struct_pb2.Value(string_value="x")
    for _ in range(levels):
        outer = struct_pb2.Value()
        outer.struct_value.fields["a"].CopyFrom(made)
        made = outer
    return made


def site(name: str, part: str, *path: str) -> sites.Site:
    assert part in sites.structs(bases.base(name).request)
    return sites.Site(part=part, path=path)


PLACES = [
    ("declare-ready", "xr", "spec"),
    ("declare-ready", "xr", "status"),
    ("declare-ready", "observed/record", "status"),
    ("declare-ready", "observed/substrate", "spec"),
    ("declare-ready", "observed/substrate", "metadata"),
    ("declare-fresh", "required/blueprint", "spec"),
    ("declare-fresh", "required/cloud", "spec"),
    ("enrol-accepted", "desired/server", "spec"),
    ("enrol-accepted", "desired/network", "metadata"),
    ("enrol-draining", "observed/server", "spec"),
    ("enrol-draining", "observed/server", "metadata"),
    ("enrol-draining", "observed/network", "spec"),
]


@pytest.mark.parametrize(("name", "part", "key"), PLACES)
def test_what_arrives_at_its_deepest_breaks_no_law(name: str, part: str, key: str) -> None:
    base = bases.base(name)
    request = fnv1.RunFunctionRequest()
    request.CopyFrom(base.request)
    sites.structs(request)[part].fields[key].CopyFrom(nested(DEEPEST - 1))
    request = fnv1.RunFunctionRequest.FromString(wire(request))

    answer = call(request)

    assert laws.lawful_or_stranger(base, request, answer) == _names_itself(part, key)


def _names_itself(part: str, key: str) -> bool:
    """Whether an object loses its name with what is put there."""
    return part.startswith("observed/") and key == "metadata"


def test_what_is_deeper_does_not_arrive() -> None:
    request = bases.base("declare-fresh").request
    request.observed.composite.resource.fields["spec"].CopyFrom(nested(DEEPEST + 1))

    with pytest.raises(DecodeError):
        fnv1.RunFunctionRequest.FromString(wire(request))


@pytest.mark.parametrize("surrogate", [b"\xed\xa0\x80", b"\xff\xfe\xfd"])
def test_text_that_is_no_unicode_does_not_arrive(surrogate: bytes) -> None:
    raw = wire(given.request(given.xr(labels={"team": "QQQ"})))

    with pytest.raises(DecodeError):
        fnv1.RunFunctionRequest.FromString(raw.replace(b"QQQ", surrogate))


@pytest.mark.parametrize(("name", "part", "key"), PLACES)
def test_three_megabytes_at_one_place_break_no_law(name: str, part: str, key: str) -> None:
    base = bases.base(name)
    request = sites.spoil(base.request, site(name, part, key), sites.value({"a": HUGE}))

    answer = call(request)

    if answer.ByteSize() < MEBIBYTE or "desired" in part:
        assert laws.lawful_or_stranger(base, request, answer) == _names_itself(part, key)
    assert answer.ByteSize() <= fn.RESPONSE_MAX_BYTES


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"labels": {f"k{n}": "v" for n in range(20_000)}}, "spec.labels"),
        ({"parameters": {f"p{n}": 1 for n in range(20_000)}}, "spec.parameters.p0"),
        ({"parameters": {"region": HUGE}}, "spec.parameters.region"),
        ({"labels": {HUGE: "v"}}, "spec.labels["),
        ({"parameters": {HUGE: "v"}}, "spec.parameters.xxx"),
        ({"blueprintRef": {"name": HUGE}}, "spec.blueprintRef.name"),
    ],
)
def test_a_huge_declaration_is_refused_in_few_words(spec: dict[str, Any], field: str) -> None:
    answer = call(given.request(given.xr(**spec)))

    laws.says_all(answer)
    (admitted,) = (one for one in answer.conditions if one.type == "Admitted")
    assert admitted.message.startswith(field)
    assert len(admitted.message) < 300
    assert not answer.desired.resources


def test_a_provider_that_says_a_megabyte_is_cut_short() -> None:
    said = given.condition("ProvisioningFailed", "True", "Q" * MEBIBYTE, "so it is" * MEBIBYTE)
    resources = {"record": given.record(given.status()), "substrate": given.substrate(said)}

    answer = call(given.request(resources=resources))

    laws.says_all(answer)
    laws.records_are_legal(answer)
    assert answer.ByteSize() < 100_000


def test_a_fatal_answer_fits_too() -> None:
    desired = {"resources": {"theirs": {"resource": {"data": "x" * (5 * MEBIBYTE)}}}}

    answer = call(given.request(input={}, desired=desired))

    assert laws.fatal(answer) is not None
    assert answer.ByteSize() < 1024


def test_a_crowd_of_other_resources_is_passed_on_to_the_byte() -> None:
    crowd = {f"theirs-{n}": {"resource": {"kind": "Bucket", "n": n}} for n in range(3000)}
    request = given.request(desired={"resources": crowd})

    answer = call(request)

    before, after = request.desired.resources, answer.desired.resources
    assert all(wire(after[name]) == wire(before[name]) for name in crowd)


def test_more_machines_than_one_xr_may_have_are_refused_and_the_others_are_not() -> None:
    world = World(entry("node-*"), **{f"node-{n:03}": server() for n in range(255)})
    world.step()
    world.given |= {f"node-{n}": server() for n in range(3)}

    answer = world.run()

    made = set(answer.desired.resources)
    assert {f"record-node-{n:03}" for n in range(255)} <= made
    assert made & {f"record-node-{n}" for n in range(3)} == {"record-node-0"}
    (admitted,) = (one for one in answer.conditions if one.type == "Admitted")
    assert "must match at most 256 resources" in admitted.message


def test_a_sibling_that_is_named_twice_is_listed_once() -> None:
    network = {"apiVersion": "v1", "kind": "Network"}
    world = World(entry(hold=["network", "network"]), server=server(), network=network)

    answer = world.run()

    listed = fn.plain(answer.desired.resources["record-server"].resource)["spec"]["substrate"]
    assert [one["kind"] for one in listed] == ["Server", "Network"]


@pytest.mark.parametrize("hold", [["record-server"], ["server"]])
def test_what_is_enrolled_and_its_record_are_nobodys_siblings(hold: list[str]) -> None:
    world = World(entry(hold=hold), server=server())

    answer = call(world.request())

    assert str(laws.fatal(answer)).startswith("cannot run step: input: value error, resources: ")


def test_conditions_objects_and_owners_that_stand_twice_break_no_law() -> None:
    base = bases.base("enrol-draining")
    body = json_format.MessageToDict(base.request)
    for one in body["observed"]["resources"].values():
        head, status = one["resource"]["metadata"], one["resource"].get("status", {})
        head["managedFields"] += copy.deepcopy(head["managedFields"])
        status["conditions"] = 2 * status.get("conditions", [])
    for looked in body.get("requiredResources", {}).values():
        looked["items"] = 2 * looked.get("items", [])
    request = json_format.ParseDict(body, fnv1.RunFunctionRequest())

    laws.lawful(base, request, call(request))
