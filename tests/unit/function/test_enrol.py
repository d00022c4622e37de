"""`Enrol`: one step in anyone's pipeline that makes nodes of resources."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.contract import names
from function.contract.errors import ContractError
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server

Object = dict[str, Any]


def composed(answer: fnv1.RunFunctionResponse, name: str = "server") -> Object:
    return fn.plain(answer.desired.resources[name].resource)


def condition(answer: fnv1.RunFunctionResponse, kind: str) -> fnv1.Condition:
    (found,) = (one for one in answer.conditions if one.type == kind)
    return found


def test_a_new_resource_waits_for_its_record() -> None:
    world = World(server=server(), network={"kind": "Network"})

    answer = world.run()

    assert set(answer.desired.resources) == {"record-server", "network"}
    assert answer.desired.composite.ready == fnv1.READY_FALSE
    declaration = composed(answer, "record-server")["spec"]["declaration"]
    assert declaration["resource"] == "server"
    assert declaration["labels"] == {"team": "checkout"}
    assert "blueprint" not in declaration


def test_an_accepted_resource_carries_its_bootstrap_its_tags_and_its_hold() -> None:
    world = World(server=server())
    world.step()
    world.accept()

    made = composed(world.run())

    assert made["spec"]["forProvider"]["userData"].startswith("#cloud-config\n")
    assert made["spec"]["forProvider"]["labels"] == {"step": "one", "team": "checkout"}
    assert made["spec"]["forProvider"]["image"] == "debian-13"
    assert made["metadata"]["name"] == world.objects["record-server"]["status"]["xrName"]
    assert made["metadata"]["labels"][names.LABEL_HOLD] == "true"
    assert made["metadata"]["annotations"] == {
        names.ANNOTATION_GENERATION: "1",
        names.ANNOTATION_BOOTSTRAP_PATHS: "spec.forProvider.userData",
    }


def test_the_record_names_what_it_protects_before_it_is_composed() -> None:
    world = World(server=server(name="mine"))

    world.step()

    named = world.objects["record-server"]["spec"]["substrate"]
    assert [one["name"] for one in named] == ["mine"]


def test_what_other_steps_composed_is_untouched_to_the_byte() -> None:
    odd = {"kind": "Thing", "data": {"big": 2**60, "part": 0.1, "no": None, "managedFields": [1]}}
    world = World(server=server(), thing=odd)
    world.given["server"]["spec"]["forProvider"]["weights"] = [1.5, None, {"managedFields": []}]
    world.step()
    world.accept()
    request = world.request({})

    answer = world.run()

    before, after = request.desired.resources["thing"], answer.desired.resources["thing"]
    assert after.SerializeToString(deterministic=True) == before.SerializeToString(
        deterministic=True
    )
    mine = composed(answer)["spec"]["forProvider"]
    assert mine["weights"] == [1.5, None, {"managedFields": []}]


def test_a_registered_node_opens_the_gate_and_leaves_readiness_to_others() -> None:
    world = World(server=server())
    world.enrolled()

    answer = world.run()

    assert answer.desired.composite.ready == fnv1.READY_UNSPECIFIED
    assert answer.desired.resources["server"].ready == fnv1.READY_UNSPECIFIED
    assert answer.desired.resources["record-server"].ready == fnv1.READY_TRUE


def test_a_document_stays_when_its_token_is_gone_and_the_rest_follows_its_step() -> None:
    world = World(server=server())
    world.enrolled()
    document = world.objects["server"]["spec"]["forProvider"]["userData"]
    world.secrets.clear()
    world.given["server"]["spec"]["forProvider"]["image"] = "debian-14"

    made = composed(world.run())

    assert made["spec"]["forProvider"]["userData"] == document
    assert made["spec"]["forProvider"]["image"] == "debian-14"


def test_its_own_output_fed_back_changes_nothing() -> None:
    world = World(server=server())
    world.enrolled()

    first = world.step()
    second = world.step()

    assert first.SerializeToString(deterministic=True) == second.SerializeToString(
        deterministic=True
    )


def test_a_resource_that_was_there_before_its_record_is_never_injected() -> None:
    world = World(server=server())
    world.objects["server"] = {**server(name="old"), "status": {"conditions": [given.READY]}}
    world.step()
    plain = composed(world.run())
    world.accept()

    answer = world.run()

    assert "metadata" not in plain
    assert "userData" not in composed(answer)["spec"]["forProvider"]
    assert condition(answer, "BootstrapInjected").reason == "NotInjected"
    assert condition(answer, "NodeRegistered").reason == "NotInjected"
    assert answer.desired.composite.ready == fnv1.READY_UNSPECIFIED
    assert answer.desired.resources["record-server"].ready == fnv1.READY_TRUE


def test_a_field_that_a_step_filled_itself_is_not_replaced() -> None:
    world = World(server=server(userData="#cloud-config\n"))
    world.step()
    world.accept()

    answer = world.run()

    assert "server" not in answer.desired.resources
    told = condition(answer, "BootstrapInjected")
    assert told.reason == "NotInjected"
    assert "spec.forProvider.userData" in told.message


@pytest.mark.parametrize("namespace", [None, "default"])
def test_outside_a_project_nothing_is_composed(namespace: str | None) -> None:
    world = World(server=server())
    world.xr["metadata"] = {"name": "pool", "uid": "u-1"}
    if namespace is not None:
        world.xr["metadata"]["namespace"] = namespace

    answer = world.run()

    assert not answer.desired.resources
    assert condition(answer, "Admitted").status == fnv1.STATUS_CONDITION_FALSE
    assert "metadata.namespace" in condition(answer, "Admitted").message


def test_several_resources_get_a_record_each_and_speak_with_one_voice() -> None:
    world = World(entry("a"), entry("b"), a=server(), b=server())
    world.step()
    world.accept("a")

    answer = world.run()

    assert {"a", "record-a", "record-b"} == set(answer.desired.resources)
    told = condition(answer, "Admitted")
    assert told.status == fnv1.STATUS_CONDITION_UNKNOWN
    assert told.message.startswith("b: ")
    assert answer.desired.composite.ready == fnv1.READY_FALSE


def test_a_star_means_every_resource_whose_name_begins_so() -> None:
    world = World(entry("node-*"), **{f"node-{n}": server() for n in range(3)}, other=server())

    answer = world.run()

    records = {name for name in answer.desired.resources if name.startswith("record-")}
    assert records == {"record-node-0", "record-node-1", "record-node-2"}
    assert "other" in answer.desired.resources


def test_more_resources_than_a_breaker_bears_are_refused() -> None:
    world = World(entry("node-*"), **{f"node-{n}": server() for n in range(257)})

    answer = world.run()

    told = condition(answer, "Admitted")
    assert told.message.startswith("node-99: input.resources: must match at most 256 resources")
    assert len(answer.desired.resources) == 256


def test_a_resource_that_its_step_stopped_composing_is_drained_in_order() -> None:
    world = World(server=server())
    world.enrolled()
    before = copy.deepcopy(world.objects["server"])
    del world.given["server"]

    world.step()
    assert world.objects["record-server"]["spec"]["drain"] is True
    assert world.objects["server"]["spec"] == before["spec"]
    assert world.objects["server"]["metadata"]["labels"] == before["metadata"]["labels"]

    world.say(substrate="Absent", phase="Deprovisioning")
    world.step()
    assert "server" not in world.objects
    assert world.objects["record-server"]["spec"]["released"] is True
    assert "deletionTimestamp" not in world.objects["record-server"]["metadata"]

    world.step()
    assert "deletionTimestamp" in world.objects["record-server"]["metadata"]

    world.finish()
    assert not world.run().desired.resources


def test_a_drained_resource_keeps_what_its_pipeline_owned_and_no_more() -> None:
    world = World(server=server())
    world.enrolled()
    live = world.objects["server"]
    live["spec"]["forProvider"]["lateInitialised"] = "by the provider"
    live["metadata"]["annotations"]["crossplane.io/external-name"] = "42"
    del world.given["server"]

    kept = composed(world.run())

    assert "lateInitialised" not in kept["spec"]["forProvider"]
    ours = {names.ANNOTATION_GENERATION, names.ANNOTATION_BOOTSTRAP_PATHS}
    assert set(kept["metadata"]["annotations"]) == ours
    assert kept["spec"]["forProvider"]["userData"] == live["spec"]["forProvider"]["userData"]


def test_a_resource_that_comes_back_while_it_drains_is_made_anew_afterwards() -> None:
    world = World(server=server())
    world.enrolled()
    stopped = world.given.pop("server")
    world.step()
    world.given["server"] = stopped

    world.step()
    assert world.objects["record-server"]["spec"]["drain"] is True

    world.say(substrate="Absent", phase="Deprovisioning")
    world.step()
    world.step()
    assert "server" not in world.objects
    assert world.run().desired.composite.ready == fnv1.READY_FALSE
    assert world.run().meta.ttl.seconds == 10

    world.finish()
    world.step()
    assert "drain" not in world.objects["record-server"]["spec"]


def test_a_resource_that_the_step_forgot_stays_as_it_is() -> None:
    world = World(server=server(), other=server())
    world.enrolled()
    document = world.objects["server"]["spec"]["forProvider"]["userData"]
    world.entries = [entry("other")]

    answer = world.run()

    assert composed(answer)["spec"]["forProvider"]["userData"] == document
    assert "record-server" in answer.desired.resources
    assert "drain" not in composed(answer, "record-server")["spec"]
    assert "must name 'server' again" in condition(answer, "Admitted").message


def test_a_sibling_is_composed_once_a_record_that_lists_it_is_accepted() -> None:
    world = World(
        entry(hold=["network"]), server=server(), network={"kind": "Net", "apiVersion": "v1"}
    )

    waiting = world.step()
    world.accept()
    held = world.step()

    assert "network" not in waiting.desired.resources
    made = composed(held, "network")
    listed = world.objects["record-server"]["spec"]["substrate"]
    assert made["metadata"]["labels"] == {names.LABEL_HOLD: "true"}
    assert {"apiVersion": "v1", "kind": "Net", "name": made["metadata"]["name"]} in listed


def test_a_sibling_is_left_alone_while_nothing_is_there_to_hold_it() -> None:
    world = World(entry(hold=["network"]), network={"kind": "Net", "apiVersion": "v1"})

    assert set(world.run().desired.resources) == {"network"}


def test_a_second_step_in_a_pipeline_is_refused_before_anything_is_applied() -> None:
    world = World(server=server())
    world.given["record-other"] = {"apiVersion": names.API_VERSION, "kind": names.RECORD_KIND}

    with pytest.raises(ContractError, match="must be the only Enrol step"):
        world.run()


@pytest.mark.parametrize("whose", ["label", "controller"])
def test_an_object_of_somebody_elses_is_never_taken_for_the_resource(whose: str) -> None:
    world = World(server=server(name="shared"))
    world.step()
    world.accept()
    theirs = server(name="shared")
    if whose == "label":
        theirs["metadata"]["labels"] = {names.LABEL_RECORD: "another-record"}
    else:
        owner = {"kind": "Pool", "name": "other", "uid": "u-2", "controller": True}
        theirs["metadata"]["ownerReferences"] = [owner]
    world.elsewhere = [theirs]

    answer = world.run()

    assert set(answer.desired.resources) == {"record-server"}
    assert composed(answer, "record-server")["spec"]["observed"]["exists"] is False
    assert "belongs to another composite" in condition(answer, "Admitted").message


def test_a_kind_that_changes_before_birth_is_refused() -> None:
    world = World(server=server(name="mine"))
    world.step()
    world.accept()
    world.given["server"]["kind"] = "Machine"

    answer = world.run()

    assert "server" not in answer.desired.resources
    assert "must keep the group and kind" in condition(answer, "BootstrapInjected").message


@pytest.mark.parametrize("name", ["../../secrets/victim", "a/b", "Upper", "a?b", "%2e%2e"])
def test_a_name_that_is_none_is_never_put_into_a_record(name: str) -> None:
    world = World(server=server(name=name))

    answer = world.run()

    assert name not in str(answer.desired.resources["record-server"])


def test_a_path_that_now_leads_to_another_text_takes_nothing_away() -> None:
    world = World(server=server())
    world.enrolled()
    before = world.objects["server"]["spec"]
    world.entries = [entry(paths={"userData": "spec.forProvider.image"})]

    answer = world.run()

    assert composed(answer)["spec"] == before
    assert "input.resources.paths.userData" in condition(answer, "Admitted").message


def test_a_held_sibling_stays_though_its_step_stopped_composing_it() -> None:
    world = World(
        entry(hold=["network"]), server=server(), network={"kind": "Net", "apiVersion": "v1"}
    )
    world.enrolled()
    del world.given["network"]

    held = world.step()
    del world.objects["network"]["metadata"]["labels"]
    world.say(substrate="Absent", phase="Deprovisioning")
    released = world.step()

    assert composed(held, "network")["metadata"]["labels"] == {names.LABEL_HOLD: "true"}
    assert "network" not in released.desired.resources


def test_a_standalone_resource_takes_no_bootstrap() -> None:
    world = World(entry(meshRole="standalone"), server=server())
    world.step()
    world.accept(bootstrap={})

    answer = world.run()

    assert "userData" not in composed(answer)["spec"]["forProvider"]
    assert condition(answer, "BootstrapInjected").reason == "NotExpected"


@pytest.mark.parametrize(
    ("strategy", "paths"),
    [
        ("helm-values", {"bootstrapToken", "apiUrl", "plexdImage"}),
        ("provider-secret", {"bootstrapToken"}),
    ],
)
def test_each_strategy_fills_its_own_fields(strategy: str, paths: set[str]) -> None:
    release = {"apiVersion": "helm.m.crossplane.io/v1beta1", "kind": "Release", "spec": {}}
    world = World(entry(injectionStrategy=strategy, labelsFrom=None), server=release)
    del world.entries[0]["labelsFrom"]
    world.step()
    world.accept()
    world.objects["record-server"]["status"]["enrolment"]["plexdImage"] = "r.example.org/plexd:v1"

    values = composed(world.run())["spec"]["forProvider"]["values"]

    assert set(values) == paths


@pytest.mark.parametrize(
    ("strategy", "field"), [("provider-secret", "providerSecret"), ("helm-values", "helmValues")]
)
def test_a_kind_that_nobody_knows_takes_the_bootstrap_where_a_blueprint_would(
    strategy: str, field: str
) -> None:
    box = {"apiVersion": "machines.example.org/v1", "kind": "Box", "spec": {"size": "small"}}
    world = World(entry(injectionStrategy=strategy), server=box)
    world.step()
    world.accept()
    world.objects["record-server"]["status"]["enrolment"]["plexdImage"] = "r.example.org/plexd:v1"

    assert set(composed(world.run())["spec"]["parameters"]) == {field}


def test_user_data_goes_as_base64_where_the_kind_wants_it() -> None:
    machine = {
        "apiVersion": "compute.azure.m.upbound.io/v1beta1",
        "kind": "LinuxVirtualMachine",
        "spec": {"forProvider": {}},
    }
    world = World(entry(provider="azure"), server=machine)
    world.step()
    world.accept()

    made = composed(world.run())["spec"]["forProvider"]

    assert not made["userData"].startswith("#")
    assert made["tags"] == {"team": "checkout"}


def test_a_preview_shows_every_resource_with_a_placeholder() -> None:
    world = World(entry("node-*"), **{f"node-{n}": server() for n in range(2)})
    world.preview = True

    answer = world.run()

    made = {composed(answer, f"node-{n}")["metadata"]["name"] for n in range(2)}
    assert len(made) == 2
    assert condition(answer, "Admitted").reason == "Preview"


CONDITIONS: list[Object] = [{"type": f"Failed{number}"} for number in range(17)]


def test_as_many_terminal_conditions_as_may_be_are_taken() -> None:
    world = World(entry(terminalConditions=CONDITIONS[:16]), server=server())

    assert "record-server" in world.run().desired.resources


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"resources": []}, "input.resources"),
        ({"resources": [entry(), entry()]}, "names must be unique"),
        ({"resources": [entry(provider="moon")]}, "input.resources.0.provider"),
        ({"resources": [entry(surprise=1)]}, "input.resources.0.surprise"),
        ({"resources": [entry(terminalConditions=CONDITIONS)]}, "terminalConditions"),
        ({"resources": [entry(hold=["server"])]}, "hold must not name an enrolled resource"),
    ],
)
def test_an_unreadable_input_names_the_field(change: Object, field: str) -> None:
    world = World(server=server())
    world.entries = change["resources"]

    with pytest.raises(ContractError, match=field):
        world.run()


@pytest.mark.parametrize(
    "path", ["userData", "status.x", "spec.crossplane.y", "spec..x", "spec[", ""]
)
def test_a_path_that_is_none_refuses_the_resource(path: str) -> None:
    world = World(entry(paths={"userData": path or "-"}), server=server())

    answer = world.run()

    assert "server" not in answer.desired.resources
    assert "input.resources.paths.userData" in condition(answer, "Admitted").message


def test_labels_that_are_no_map_refuse_the_resource() -> None:
    world = World(server=server())
    world.xr["spec"]["labels"] = ["team"]

    answer = world.run()

    assert condition(answer, "Admitted").message == "spec.labels: must be a map of labels"
    assert not answer.desired.resources


@pytest.mark.parametrize(("labels", "complete"), [({}, True), ({"team": "desk"}, False)])
def test_without_a_place_for_tags_only_labels_that_are_declared_are_missed(
    labels: Object, complete: bool
) -> None:
    release = {"apiVersion": "helm.m.crossplane.io/v1beta1", "kind": "Release", "spec": {}}
    world = World(entry(injectionStrategy="helm-values"), server=release)
    world.xr["spec"]["labels"] = labels

    told = condition(world.run(), "CloudTagsComplete")

    assert (told.status == fnv1.STATUS_CONDITION_TRUE) == complete


def test_a_label_that_is_no_tag_is_told_once() -> None:
    world = World(entry(provider="gcp", paths={"tags": "spec.forProvider.labels"}), server=server())
    world.xr["spec"]["labels"] = {"Team": "Checkout"}

    first = world.run()
    told = condition(first, "CloudTagsComplete")
    world.xr["status"] = {
        "conditions": [given.condition(told.type, "False", told.reason, told.message)]
    }
    second = world.run()

    assert told.status == fnv1.STATUS_CONDITION_FALSE
    assert [result.severity for result in first.results] == [fnv1.SEVERITY_WARNING]
    assert not second.results


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"provider": "aws"}, "input.resources.provider"),
        ({"injectionStrategy": "provider-secret"}, "input.resources.injectionStrategy"),
        ({"meshRole": "standalone"}, "input.resources.meshRole"),
        ({"cloudCredential": "another"}, "input.resources.cloudCredential"),
    ],
)
def test_another_node_under_an_accepted_name_is_refused_and_the_one_that_is_there_stays(
    change: Object, field: str
) -> None:
    world = World(server=server())
    world.enrolled()
    before = {name: copy.deepcopy(raw) for name, raw in world.objects.items()}
    world.entries = [entry(**change)]

    answer = world.step()

    admitted = condition(answer, "Admitted")
    assert (admitted.status, admitted.reason) == (fnv1.STATUS_CONDITION_FALSE, "Immutable")
    assert admitted.message == f"{field}: is immutable; restore the accepted value"
    declared = world.objects["record-server"]["spec"]["declaration"]
    assert declared == before["record-server"]["spec"]["declaration"]
    assert world.objects["server"]["spec"] == before["server"]["spec"]


def test_a_preview_beside_a_machine_that_is_there_shows_no_placeholder() -> None:
    world = World(server=server())
    world.objects["server"] = {**server(name="old"), "status": {"conditions": [given.READY]}}
    world.preview = True

    answer = world.run()

    assert condition(answer, "Admitted").reason != "Preview"
    assert "userData" not in composed(answer)["spec"]["forProvider"]


def test_a_preview_of_what_is_accepted_is_what_is_composed() -> None:
    world = World(server=server())
    world.step()
    world.accept()
    plain = world.run()
    world.preview = True

    shown = world.run()

    assert shown.desired.SerializeToString(deterministic=True) == plain.desired.SerializeToString(
        deterministic=True
    )
