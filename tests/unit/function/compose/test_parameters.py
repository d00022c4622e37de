"""Parameters of what was accepted: what reaches a substrate, and when none is born."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType
from function.model.call import Outcome
from tests.unit.function import given

Object = dict[str, Any]
NODE = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}


def parameters(**mutable: bool) -> list[Object]:
    return [
        {"name": "region", "type": "string", "required": True},
        {"name": "instanceType", "type": "string", "default": "standard-8"},
        {"name": "diskSizeGb", "type": "integer", "default": 400, "maximum": 500, **mutable},
    ]


def again(declared: Object | None = None, *, live: bool = True, **accepted: Any) -> Outcome:
    """Answer where the blueprint was made again with other defaults since it was accepted."""
    known = given.status(phase="Ready", node=NODE) if live else given.status()
    known["accepted"] = given.declaration(**accepted)
    resources = {"record": given.record(known)}
    if live:
        resources["substrate"] = given.substrate(given.READY)
    made = given.blueprint(parameters=parameters(mutable=True))
    found = given.required(blueprint=made, token=given.secret(), substrate=None)
    return given.answer(declared, resources=resources, found=found)


@pytest.mark.parametrize("told", [{}, {"given": ["region"]}], ids=["old row", "told"])
def test_another_default_reaches_no_live_substrate(told: Object) -> None:
    outcome = again(**told)

    assert outcome.substrate is not None
    assert outcome.record is not None
    made = outcome.substrate.manifest["spec"]["parameters"]
    assert made == given.declaration()["parameters"]
    assert outcome.record.manifest["spec"]["declaration"] == given.declaration(**told)
    assert given.verdict(outcome, ConditionType.ADMITTED).status is True


def test_another_registration_reaches_no_live_substrate() -> None:
    known = given.status(phase="Ready", node=NODE)
    made = given.blueprint(registration={"policy": "Recreate"}, version="v2")

    outcome = given.answer(
        resources={"record": given.record(known), "substrate": given.substrate(given.READY)},
        found=given.required(blueprint=made),
    )

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["declaration"] == given.declaration()


def test_a_mutable_parameter_is_declared_anew_and_composed_once_it_is_accepted() -> None:
    outcome = again(given.xr(parameters={"region": "nbg1", "diskSizeGb": 80}))

    assert outcome.record is not None
    assert outcome.substrate is not None
    declared = outcome.record.manifest["spec"]["declaration"]
    assert declared["parameters"]["diskSizeGb"] == 80
    assert declared["given"] == ["diskSizeGb", "region"]
    assert outcome.substrate.manifest["spec"]["parameters"]["diskSizeGb"] == 40


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"region": "fsn1"}, "spec.parameters.region: cannot change while the machine exists"),
        ({"region": "nbg1", "instanceType": "x"}, "spec.parameters.instanceType: cannot change"),
        ({"region": "nbg1", "diskSizeGb": 501}, "spec.parameters.diskSizeGb: must be at most 500"),
    ],
)
def test_another_edit_of_a_live_substrate_is_refused_and_changes_nothing(
    edit: Object, message: str
) -> None:
    outcome = again(given.xr(parameters=edit, labels={}))

    told = given.verdict(outcome, ConditionType.ADMITTED)
    assert told.status is False
    assert told.message.startswith(message)
    assert outcome.record is not None
    assert outcome.substrate is not None
    assert outcome.record.manifest["spec"]["declaration"] == given.declaration()
    assert outcome.substrate.manifest["spec"] == {
        key: value for key, value in given.substrate()["spec"].items() if key != "crossplane"
    }


def test_nothing_is_born_of_parameters_that_are_being_edited() -> None:
    outcome = again(given.xr(parameters={"region": "fsn1"}), live=False)

    assert outcome.substrate is None
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["declaration"]["parameters"]["region"] == "fsn1"
    assert again(live=False).substrate is not None


def test_a_providerconfig_stays_where_the_substrate_says_that_it_takes_it() -> None:
    observed = given.substrate(given.READY, configName="hz-1")
    observed["metadata"]["annotations"][names.ANNOTATION_PROVIDER_CONFIG] = "spec.configName"
    known = given.status(providerConfigRef={"kind": "ProviderConfig", "name": "hz-2"})
    made = given.blueprint(providerConfig={"fieldPath": "spec.elsewhere"})

    outcome = given.answer(
        resources={"record": given.record(known), "substrate": observed},
        found=given.required(blueprint=made),
    )

    assert outcome.substrate is not None
    spec = outcome.substrate.manifest["spec"]
    assert (spec.get("configName"), spec.get("elsewhere")) == ("hz-1", None)


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"pattern": "(a+)+"}, "pattern must begin with ^"),
        ({"enum": ["a"], "default": "b"}, "default must be one of a"),
        ({"minLength": 2, "maxLength": 1}, "minLength must not exceed maxLength"),
    ],
)
def test_a_blueprint_that_contradicts_itself_is_named_with_its_field(
    limits: Object, rule: str
) -> None:
    made = given.blueprint(parameters=[{"name": "region", "type": "string", **limits}])

    outcome = given.answer(found=given.required(blueprint=made))

    told = given.verdict(outcome, ConditionType.ADMITTED)
    assert told.reason == "UnsupportedBlueprint"
    assert told.message.startswith(f"BlueprintVersion.spec.parameters.0: {rule}")


def test_a_preview_holds_parameters_to_their_limits_and_shows_constants() -> None:
    made = given.blueprint(constants=[{"name": "namespace", "value": "machines"}])

    outcome = given.answer(found={"blueprint": made}, preview=True)
    refused = given.answer(
        given.xr(parameters={"region": "nbg1", "namespace": "kube-system"}),
        found={"blueprint": made},
        preview=True,
    )

    assert outcome.substrate is not None
    assert outcome.substrate.manifest["spec"]["parameters"]["namespace"] == "machines"
    assert refused.substrate is None
    assert "is a constant" in given.verdict(refused, ConditionType.ADMITTED).message
