"""Another object under a name of ours ends the run before anything is made of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function.contract import names
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server
from tests.unit.function.hostile import laws
from tests.unit.function.hostile.calls import call

Object = dict[str, Any]

OWN = "11111111-2222-3333-4444-555555555555"
OTHER = "77777777-2222-3333-4444-555555555555"
CONFIG_MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "decoy"}}


def controlled(found: Object, uid: str = OWN) -> Object:
    made = copy.deepcopy(found)
    owner = {"apiVersion": names.API_VERSION, "kind": names.XR_KIND, "name": "web-1"}
    made["metadata"]["ownerReferences"] = [{**owner, "uid": uid, "controller": True}]
    return made


def renamed(found: Object, name: str) -> Object:
    made = copy.deepcopy(found)
    made["metadata"]["name"] = name
    return made


def bare(found: Object, **changes: Any) -> Object:
    """The same without what tells that it is held."""
    made = {**copy.deepcopy(found), **changes}
    made["metadata"]["labels"] = {}
    return made


RECORD = given.record(given.status())
STRANGERS: dict[str, Object] = {
    "a record of another name": {"record": renamed(RECORD, "chosen")},
    "a record of another group": {"record": {**RECORD, "apiVersion": "example.org/v1"}},
    "another kind as a record": {"record": controlled(CONFIG_MAP)},
    "a record that another controls": {"record": controlled(RECORD, OTHER)},
    "another kind": {"record": RECORD, "substrate": controlled(CONFIG_MAP)},
    "another kind of its name": {
        "record": RECORD,
        "substrate": bare(given.substrate(), kind="XOtherVM"),
    },
    "another name": {"record": RECORD, "substrate": renamed(given.substrate(), "pr-mine")},
    "one that another controls": {
        "record": RECORD,
        "substrate": controlled(given.substrate(), OTHER),
    },
    "one before any record": {"substrate": bare(given.substrate())},
    "one before its acceptance": {"record": given.record(), "substrate": bare(given.substrate())},
}


@pytest.mark.parametrize("resources", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_stranger_under_a_name_of_a_declaration_ends_the_run(resources: Object) -> None:
    answer = call(given.request(resources=resources))

    assert (laws.fatal(answer) or "").startswith(laws.STRANGER)
    assert not answer.desired.resources
    (said,) = answer.conditions
    assert (said.type, said.reason) == ("Admitted", "NotComposedHere")
    assert said.status == fnv1.STATUS_CONDITION_FALSE


@pytest.mark.parametrize("resources", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_name_that_this_xr_does_not_use_is_nobodys_business(resources: Object) -> None:
    others = {f"theirs-{name}": found for name, found in resources.items()}

    assert laws.fatal(call(given.request(resources=others))) is None


OURS: dict[str, Object] = {
    "controlled": {"record": controlled(RECORD), "substrate": controlled(given.substrate())},
    "orphaned and named again": {"record": RECORD, "substrate": given.substrate()},
    "its record lost": {"substrate": given.substrate()},
    "its record made anew": {"record": given.record(), "substrate": given.substrate()},
    "its labels lost": {"record": RECORD, "substrate": bare(given.substrate())},
}


@pytest.mark.parametrize("resources", OURS.values(), ids=OURS.keys())
def test_what_this_xr_composed_is_composed_again(resources: Object) -> None:
    answer = call(given.request(resources=resources))

    assert laws.fatal(answer) is None
    assert "substrate" in answer.desired.resources


def test_a_composite_without_a_uid_is_previewed_with_what_is_observed() -> None:
    xr = given.xr()
    del xr["metadata"]["uid"]
    resources = {"record": controlled(RECORD), "substrate": controlled(given.substrate())}

    assert laws.fatal(call(given.request(xr, resources))) is None


def test_a_record_that_was_found_and_another_composite_controls_is_not_taken() -> None:
    theirs = controlled(RECORD, OTHER)
    theirs["metadata"]["ownerReferences"][0]["kind"] = "Pool"

    answer = call(given.request(found=given.required(record=theirs)))

    assert (laws.fatal(answer) or "").startswith(laws.STRANGER)


def test_a_record_that_an_earlier_xr_of_this_name_left_is_found() -> None:
    left = controlled(RECORD, OTHER)

    answer = call(given.request(found=given.required(record=left)))

    assert laws.fatal(answer) is None
    assert "record" in answer.desired.resources


@pytest.mark.parametrize("labels", [{}, {names.LABEL_RECORD: given.RECORD}])
def test_a_substrate_that_somebody_prepared_is_not_adopted(labels: Object) -> None:
    prepared = bare(given.substrate())
    prepared["metadata"]["labels"] = labels
    found = given.required(substrate=prepared)

    answer = call(given.request(resources={"record": RECORD}, found=found))

    assert (laws.fatal(answer) or "").startswith(f"{laws.STRANGER}'substrate'")
    assert "delete it" in (laws.fatal(answer) or "")


def test_a_substrate_that_somebody_prepared_and_that_goes_is_waited_for() -> None:
    prepared = bare(given.substrate())
    prepared["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = given.required(substrate=prepared)

    answer = call(given.request(resources={"record": RECORD}, found=found))

    assert laws.fatal(answer) is None
    assert set(answer.desired.resources) == {"record"}


def pool() -> World:
    network = {"apiVersion": "hcloud.example.org/v1alpha1", "kind": "Network", "spec": {}}
    world = World(entry(hold=["network"]), server=server(), network=network)
    world.enrolled()
    return world


ENROLLED = {
    "a machine of another name": ("server", {"name": "mine"}, {}),
    "a machine of another kind": ("server", {}, {"kind": "Disk"}),
    "a record of another name": ("record-server", {"name": "chosen"}, {}),
    "a sibling of another kind": ("network", {}, {"kind": "Secret"}),
}


@pytest.mark.parametrize(("name", "head", "fields"), ENROLLED.values(), ids=ENROLLED.keys())
def test_a_stranger_under_a_name_of_a_step_ends_the_run(
    name: str, head: Object, fields: Object
) -> None:
    world = pool()
    decoy = {**world.objects[name], **fields}
    decoy["metadata"] = {"name": decoy["metadata"]["name"], **head}
    world.objects[name] = decoy

    answer = call(world.request())

    assert (laws.fatal(answer) or "").startswith(f"{laws.STRANGER}'{name}'")
    assert set(answer.desired.resources) == set(world.given)


def test_a_sibling_that_was_held_before_its_step_named_it_keeps_its_name() -> None:
    world = pool()
    world.given["network"]["metadata"] = {"name": "by-its-step"}

    assert laws.fatal(call(world.request())) is None
