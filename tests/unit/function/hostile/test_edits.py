"""A Composition that is edited under running machines takes nothing away from them."""

from __future__ import annotations

from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.contract import names
from function.contract.errors import ContractError
from function.render.fields import fieldpath
from tests.unit.function.enrol_world import World, entry, server
from tests.unit.function.hostile import laws
from tests.unit.function.hostile.bases import NETWORK
from tests.unit.function.hostile.calls import call

Object = dict[str, Any]


def running(name: str = "server") -> World:
    """A registered node with a held network."""
    world = World(entry("server", hold=["network"]), server=server(), network=NETWORK)
    if name != "server":
        world = World(entry("node-*", hold=["network"]), **{name: server()}, network=NETWORK)
    world.enrolled(name)
    return world


def spec(answer: fnv1.RunFunctionResponse, name: str = "server") -> Object:
    made = fn.plain(answer.desired.resources[name].resource)["spec"]
    assert isinstance(made, dict)
    return made


def labels(answer: fnv1.RunFunctionResponse, name: str) -> Object:
    made = fn.plain(answer.desired.resources[name].resource)["metadata"]["labels"]
    assert isinstance(made, dict)
    return made


def admitted(answer: fnv1.RunFunctionResponse) -> fnv1.Condition:
    (found,) = (one for one in answer.conditions if one.type == "Admitted")
    return found


@pytest.mark.parametrize(
    "paths",
    [
        {"userData": "spec.forProvider.cloudInit"},
        {"userDataBase64": "spec.forProvider.userData64"},
        {"userData": "not a path"},
        {"tags": "spec..tags"},
    ],
)
def test_a_path_that_is_edited_leaves_the_document_where_it_is(paths: Object) -> None:
    world = running()
    document = world.objects["server"]["spec"]["forProvider"]["userData"]
    world.entries[0]["paths"] = paths

    answer = world.run()

    assert spec(answer)["forProvider"]["userData"] == document
    assert admitted(answer).status == fnv1.STATUS_CONDITION_FALSE
    assert "input.resources.paths" in admitted(answer).message


def test_a_machine_that_becomes_another_kind_stays_and_says_so() -> None:
    world = running()
    before = world.objects["server"]["spec"]
    world.given["server"]["kind"] = "ServerV2"

    answer = world.run()

    made = fn.plain(answer.desired.resources["server"].resource)
    assert (made["kind"], made["spec"]) == ("Server", before)
    assert admitted(answer).message == "server: must keep the group and kind that its record names"


def test_a_version_of_a_kind_may_follow_its_provider() -> None:
    world = running()
    world.given["server"]["apiVersion"] = "hcloud.example.org/v1beta1"

    answer = world.run()

    made = fn.plain(answer.desired.resources["server"].resource)
    assert made["apiVersion"] == "hcloud.example.org/v1beta1"
    assert admitted(answer).status == fnv1.STATUS_CONDITION_TRUE


@pytest.mark.parametrize("odd", ["x", 1, [], None, {"userData": {}}])
def test_a_step_that_composes_nonsense_leaves_a_running_machine_as_it_is(odd: object) -> None:
    world = running()
    before = world.objects["server"]["spec"]["forProvider"]["userData"]
    world.given["server"]["spec"] = {"forProvider": odd}

    answer = world.run()

    assert laws.fatal(answer) is None
    assert spec(answer)["forProvider"]["userData"] == before


def test_a_sibling_that_is_held_no_more_keeps_its_label_until_it_is_let_go() -> None:
    world = running()
    world.entries[0]["hold"] = []

    held = world.run()
    del world.objects["network"]["metadata"]["labels"][names.LABEL_HOLD]
    free = world.run()

    assert labels(held, "network")[names.LABEL_HOLD] == "true"
    assert "metadata" not in fn.plain(free.desired.resources["network"].resource)


def test_a_sibling_of_a_machine_that_the_step_forgot_stays_held_and_listed() -> None:
    world = running()
    world.entries = [entry("other")]
    del world.given["network"]

    answer = world.run()

    assert labels(answer, "network")[names.LABEL_HOLD] == "true"
    listed = spec(answer, "record-server")["substrate"]
    assert [one["kind"] for one in listed] == ["Server", "Network"]


def test_a_machine_of_a_star_is_kept_when_its_record_is_lost() -> None:
    world = running("node-7")
    del world.given["node-7"], world.objects["record-node-7"]

    answer = world.run()

    assert {"node-7", "record-node-7"} <= set(answer.desired.resources)


def test_an_object_of_another_kind_under_a_records_name_is_no_record() -> None:
    forged = {
        **NETWORK,
        "metadata": {"name": "forged"},
        "status": running().objects["record-server"]["status"],
    }
    world = World(server=server())
    world.objects["record-server"] = forged

    answer = call(world.request())

    assert str(laws.fatal(answer)).startswith(f"{laws.STRANGER}'record-server'")


@pytest.mark.parametrize(
    ("name", "ready"), [("absent-*", fnv1.READY_UNSPECIFIED), ("absent", fnv1.READY_FALSE)]
)
def test_a_step_that_means_nothing_says_so_in_every_condition(name: str, ready: fnv1.Ready) -> None:
    world = World(entry(name), theirs=NETWORK)

    answer = world.run()

    laws.says_all(answer)
    assert answer.desired.composite.ready == ready


@pytest.mark.parametrize("filled", [{}, {"a": 1}, [], ["x"], 0, False, "#cloud-config"])
def test_whatever_a_step_filled_itself_is_never_replaced(filled: object) -> None:
    world = World(server=server(userData=filled))
    world.step()
    world.accept()

    answer = world.run()

    assert "server" not in answer.desired.resources
    (told,) = (one for one in answer.conditions if one.type == "BootstrapInjected")
    assert told.reason == "NotInjected"


def test_tags_whose_keys_are_no_texts_stay_beside_ours() -> None:
    tags = [{"key": {}}, {"key": []}, {"key": None}, "x"]
    path = "spec.forProvider.tag[key,value]"
    world = World(entry(paths={"tags": path}), server=server(tag=tags))
    world.step()
    world.accept()

    made = spec(world.run())["forProvider"]["tag"]

    assert made == [*tags, {"key": "team", "value": "checkout"}]


@pytest.mark.parametrize("kind", [None, "", 5, "x y"])
def test_a_resource_that_does_not_say_what_it_is_is_refused(kind: object) -> None:
    world = World(server={**server(), "kind": kind})

    answer = call(world.request())

    laws.says_all(answer)
    assert admitted(answer).message == "server: must have an apiVersion and a kind"
    assert not answer.desired.resources


@pytest.mark.parametrize("path", ["spec.a.b[1].c", "spec.a[0].b", "spec.t.x.y"])
def test_a_path_that_cannot_be_written_changes_nothing(path: str) -> None:
    target: Object = {"spec": {"t": "text", "a": {}}}

    with pytest.raises(ContractError):
        fieldpath.write(target, fieldpath.parse("paths.x", path), "v")

    assert target == {"spec": {"t": "text", "a": {}}}


def test_a_path_deeper_than_a_later_step_could_read_is_none() -> None:
    deepest = ".".join(["spec", *"a" * (fieldpath.SEGMENTS_MAX - 1)])

    assert len(fieldpath.parse("paths.x", deepest)) == fieldpath.SEGMENTS_MAX
    with pytest.raises(ContractError):
        fieldpath.parse("paths.x", f"{deepest}.a")
