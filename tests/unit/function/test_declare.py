"""Every way a declaration is refused: which condition, which words, and nothing created."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract.conditions import ConditionType
from function.contract.errors import ContractError
from function.model.call import Ttl
from tests.unit.function import given

Object = dict[str, Any]


def outside() -> Object:
    made = given.xr()
    made["metadata"]["namespace"] = "default"
    return made


REFUSALS = {
    "unknown blueprint": (
        given.xr(),
        given.required(blueprint=None),
        (
            "BlueprintNotFound",
            "spec.blueprintRef: BlueprintVersion 'generic-vm-v1alpha1' not found",
        ),
    ),
    "unknown credential": (
        given.xr(),
        given.required(credential=None),
        (
            "CredentialNotFound",
            "spec.cloudCredentialRef: CloudCredential 'hetzner-eu-main' not found",
        ),
    ),
    "unknown cloud": (
        given.xr(),
        given.required(cloud=None),
        ("CloudNotFound", "CloudCredential.spec.cloudRef: Cloud 'hetzner-eu' not found"),
    ),
    "cluster-scoped blueprint": (
        given.xr(),
        given.required(
            blueprint=given.blueprint(
                xr={"apiVersion": "b.example.org/v1", "kind": "X", "scope": "Cluster"}
            )
        ),
        ("UnsupportedBlueprint", "spec.blueprintRef: names a cluster-scoped blueprint"),
    ),
    "unreadable blueprint": (
        given.xr(),
        given.required(blueprint=given.blueprint(injectionStrategy="carrier-pigeon")),
        ("UnsupportedBlueprint", "BlueprintVersion.spec.injectionStrategy: "),
    ),
    "provider the blueprint does not know": (
        given.xr(),
        given.required(cloud=given.cloud("azure")),
        ("UnsupportedBlueprint", "spec.cloudCredentialRef: is of provider azure"),
    ),
    "outside a Project": (
        outside(),
        given.required(),
        ("InvalidInput", "metadata.namespace: must be a Project's"),
    ),
    "missing parameter": (
        given.xr(parameters={}),
        given.required(),
        ("InvalidParameters", "spec.parameters.region: is required"),
    ),
    "mistyped parameter": (
        given.xr(parameters={"region": "nbg1", "diskSizeGb": "forty"}),
        given.required(),
        ("InvalidParameters", "spec.parameters.diskSizeGb: must be an integer"),
    ),
    "broken integer": (
        given.xr(parameters={"region": "nbg1", "diskSizeGb": 1.5}),
        given.required(),
        ("InvalidParameters", "spec.parameters.diskSizeGb: must be an integer"),
    ),
    "undeclared parameter": (
        given.xr(parameters={"region": "nbg1", "colour": "red"}),
        given.required(),
        ("InvalidParameters", "spec.parameters.colour: is not a parameter"),
    ),
    "null parameter": (
        given.xr(parameters={"region": None}),
        given.required(),
        ("InvalidParameters", "spec.parameters.region: must not be null"),
    ),
    "reserved parameter helmValues": (
        given.xr(parameters={"region": "nbg1", "helmValues": {"bootstrapToken": "x"}}),
        given.required(),
        ("InvalidParameters", "spec.parameters.helmValues: is reserved"),
    ),
    "reserved parameter providerSecret": (
        given.xr(parameters={"region": "nbg1", "providerSecret": "x"}),
        given.required(),
        ("InvalidParameters", "spec.parameters.providerSecret: is reserved"),
    ),
    "parameter that cannot be stored": (
        given.xr(parameters={"region": "nbg1\0", "diskSizeGb": 40}),
        given.required(),
        ("InvalidParameters", "spec.parameters.region: must not hold the character U+0000"),
    ),
    "label that cannot be stored": (
        given.xr(labels={"team": "a\0b"}),
        given.required(),
        ("InvalidInput", "spec.labels[team]: must not hold the character U+0000"),
    ),
    "label whose key cannot be stored": (
        given.xr(labels={"te\0am": "ab"}),
        given.required(),
        ("InvalidInput", "spec.labels: must not hold the character U+0000"),
    ),
    "label that is no string": (
        given.xr(labels={"team": 7}),
        given.required(),
        ("InvalidInput", "spec.labels[team]: must be a string"),
    ),
    "label that is too long": (
        given.xr(labels={"team": "x" * 257}),
        given.required(),
        ("InvalidInput", "spec.labels[team]: must have a key and at most 256 bytes"),
    ),
    "parameters that are no object": (
        given.xr(parameters=["region"]),
        given.required(),
        ("InvalidInput", "spec.parameters: "),
    ),
    "no blueprint reference": (
        given.xr(blueprintRef=None),
        given.required(),
        ("InvalidInput", "spec.blueprintRef: "),
    ),
    "negative retry": (
        given.xr(retry=-1),
        given.required(),
        ("InvalidInput", "spec.retry: "),
    ),
}


@pytest.mark.parametrize(("declared", "found", "answer"), REFUSALS.values(), ids=list(REFUSALS))
def test_a_refused_declaration_creates_nothing(
    declared: Object, found: dict[str, Object | None], answer: tuple[str, str]
) -> None:
    reason, message = answer

    outcome = given.answer(declared, found=found)

    admitted = given.verdict(outcome, ConditionType.ADMITTED)
    assert (admitted.status, admitted.reason) == (False, reason)
    assert admitted.message.startswith(message)
    assert outcome.record is None
    assert outcome.substrate is None
    assert not outcome.ready


@pytest.mark.parametrize(("declared", "found", "answer"), REFUSALS.values(), ids=list(REFUSALS))
def test_a_refused_edit_leaves_everything_as_it_is(
    declared: Object, found: dict[str, Object | None], answer: tuple[str, str]
) -> None:
    node = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
    held = given.record(given.status(phase="Ready", node=node))
    resources = {"record": held, "substrate": given.substrate(given.READY)}
    before = given.answer(resources=resources)

    outcome = given.answer(declared, resources=resources, found=found)

    assert given.verdict(outcome, ConditionType.ADMITTED).reason == answer[0]
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["declaration"] == held["spec"]["declaration"]
    assert outcome.substrate is not None
    assert before.substrate is not None
    ours = outcome.substrate.manifest
    assert ours["spec"] == before.substrate.manifest["spec"]
    assert ours["metadata"]["name"] == given.XR_NAME


@pytest.mark.parametrize("absent", ["blueprint", "credential", "cloud"])
def test_an_absent_object_is_asked_for_again_soon(absent: str) -> None:
    outcome = given.answer(found=given.required(**{absent: None}))

    assert outcome.ttl is Ttl.WAITING


def test_a_users_mistake_is_looked_at_again_later() -> None:
    outcome = given.answer(given.xr(parameters={}))

    assert outcome.ttl is Ttl.REFUSED


def test_what_was_not_looked_for_yet_is_not_called_absent() -> None:
    outcome = given.answer(found={})

    admitted = given.verdict(outcome, ConditionType.ADMITTED)
    assert (admitted.status, admitted.reason) == (None, "WaitingForCrossplane")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"blueprint": {"name": "other", "version": "v1"}}, "spec.blueprintRef"),
        ({"meshRole": "standalone"}, "spec.blueprintRef"),
        ({"injectionStrategy": "helm-values"}, "spec.blueprintRef"),
        ({"cloudCredential": "another"}, "spec.cloudCredentialRef"),
    ],
)
def test_another_node_under_an_accepted_name_is_refused(changes: Object, field: str) -> None:
    status = given.status(accepted=given.declaration(**changes))

    outcome = given.answer(
        resources={"record": given.record(status)},
        found=given.required(token=given.secret(), substrate=None),
    )

    admitted = given.verdict(outcome, ConditionType.ADMITTED)
    assert (admitted.status, admitted.reason) == (False, "Immutable")
    assert admitted.message == f"{field}: is immutable; restore the accepted value"
    assert outcome.substrate is None


def test_whole_floats_are_integers_and_defaults_are_applied() -> None:
    outcome = given.answer(given.xr(parameters={"region": "nbg1", "diskSizeGb": 80.0}, retry=1))

    assert outcome.record is not None
    declared = outcome.record.manifest["spec"]["declaration"]
    assert declared["parameters"] == {
        "region": "nbg1",
        "instanceType": "standard-2",
        "diskSizeGb": 80,
    }
    assert declared["retry"] == 1


def test_absent_parameters_and_labels_are_empty_ones() -> None:
    declared = given.xr(parameters=None, labels=None)
    found = given.required(blueprint=given.blueprint(parameters=[]))

    outcome = given.answer(declared, found=found)

    assert outcome.record is not None


def test_names_that_cannot_exist_are_not_looked_up() -> None:
    outcome = given.answer(given.xr(blueprintRef={"name": "../x"}), found={})

    assert set(outcome.requirements) == {"credential", "record"}


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({"apiVersion": "other/v1", "kind": "Declare"}, "input.apiVersion"),
        ({**given.STEP, "enrolment": "x"}, "input.enrolment"),
        ({**given.STEP, "enrolment": {"baseURL": 7}}, "input.enrolment.baseURL"),
        ({**given.STEP, "enrolment": {"baseUrl": "https://x"}}, "input.enrolment.baseUrl"),
        ({**given.STEP, "surprise": 1}, "input.surprise"),
    ],
)
def test_an_unreadable_input_is_an_error_that_names_the_field(step: Object, field: str) -> None:
    with pytest.raises(ContractError) as caught:
        given.answer(step=step)

    assert caught.value.field == field


def test_a_preview_needs_no_reconciler_and_no_credential() -> None:
    outcome = given.answer(found={"blueprint": given.blueprint()}, preview=True)

    assert outcome.record is not None
    assert outcome.substrate is not None
    made = outcome.substrate.manifest
    assert made["metadata"]["name"] == "pr-00000000-0000-7000-8000-000000000000"
    assert "preview-token-not-a-secret" in made["spec"]["userData"]
    assert "https://broker.invalid" in made["spec"]["userData"]
    assert outcome.record.manifest["spec"]["declaration"]["provider"] == "hetzner"
    assert given.verdict(outcome, ConditionType.ADMITTED).reason == "Preview"
    assert not outcome.ready


def test_a_preview_takes_the_inputs_knobs_before_placeholders() -> None:
    step = {**given.STEP, "enrolment": {"baseURL": "https://api.acme.example"}}

    outcome = given.answer(step=step, preview=True)

    assert outcome.substrate is not None
    document = outcome.substrate.manifest["spec"]["userData"]
    assert "PLEXD_API='https://api.acme.example'" in document
    assert "https://broker.invalid/plexd-linux-amd64" in document


def test_a_preview_still_refuses() -> None:
    outcome = given.answer(given.xr(parameters={}), preview=True)

    assert outcome.record is None
    assert given.verdict(outcome, ConditionType.ADMITTED).reason == "InvalidParameters"


def test_a_preview_never_touches_what_is_there() -> None:
    resources = {"record": given.record(given.status()), "substrate": given.substrate()}

    outcome = given.answer(resources=resources, preview=True)

    assert outcome == given.answer(resources=resources)


def test_the_records_knobs_win_over_the_inputs() -> None:
    enrolment = {
        "baseURL": "https://api.acme.example",
        "plexdDownloadURL": "https://downloads.acme.example/plexd",
    }
    status = given.status()
    del status["enrolment"]["plexdDownloadURL"]

    outcome = given.answer(
        resources={"record": given.record(status)},
        found=given.required(token=given.secret(), substrate=None),
        step={**given.STEP, "enrolment": enrolment},
    )

    assert outcome.substrate is not None
    document = outcome.substrate.manifest["spec"]["userData"]
    assert "https://api.example.org" in document
    assert "https://downloads.acme.example/plexd" in document
    assert "https://api.acme.example" not in document
