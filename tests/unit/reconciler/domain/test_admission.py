"""What is refused, with its reason, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract.catalog.parameter import Constant
from function.contract.record import Declaration
from reconciler.domain.admission.admission import immutable, judge, judge_enrolled
from reconciler.domain.aggregate.errors import BrokerError, RefusedError
from tests.unit.reconciler.samples import BLUEPRINT, CLOUD, CREDENTIAL, DECLARATION, ENROLLED


def _judged(declaration: Declaration = DECLARATION, **views: Any) -> str:
    given = {"blueprint": BLUEPRINT, "credential": CREDENTIAL, "cloud": CLOUD, **views}
    try:
        judge(declaration, project=given.pop("project", "shop"), **given)
    except RefusedError as error:
        return error.shown_reason
    except BrokerError as error:
        return error.code
    return "accepted"


def _declared(**changes: Any) -> Declaration:
    return DECLARATION.model_copy(update=changes)


def test_a_good_declaration_is_accepted() -> None:
    assert _judged() == "accepted"


@pytest.mark.parametrize(
    ("views", "answer"),
    [
        ({"blueprint": None}, "ErrBlueprintNotFound"),
        ({"credential": None, "cloud": None}, "ErrCredentialNotFound"),
        ({"cloud": None}, "ErrCloudNotFound"),
        ({"project": "other"}, "CredentialNotAllowed"),
        (
            {"blueprint": BLUEPRINT.model_copy(
                update={"xr": BLUEPRINT.xr.model_copy(update={"scope": "Cluster"})})},
            "UnsupportedBlueprint",
        ),
        ({"cloud": CLOUD.model_copy(update={"provider": "aws"})}, "UnsupportedBlueprint"),
    ],
)  # fmt: skip
def test_each_missing_or_foreign_view_has_its_answer(views: dict[str, Any], answer: str) -> None:
    assert _judged(**views) == answer


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"region": 7, "diskSizeGb": 40},
        {"region": "nbg1", "diskSizeGb": "40"},
        {"region": "nbg1", "diskSizeGb": 40, "colour": "red"},
        {"region": "nbg1", "diskSizeGb": 40, "helmValues": "x"},
        {"region": "nbg1", "diskSizeGb": 40, "providerSecret": "x"},
        {"region": "nbg1"},
        {"region": "nbg1\0", "diskSizeGb": 40},
    ],
)
def test_parameters_must_be_complete_and_exactly_the_schema(parameters: dict[str, Any]) -> None:
    assert _judged(_declared(parameters=parameters)) == "ErrParameterValuesInvalid"


@pytest.mark.parametrize("labels", [{"team": "a\0b"}, {"te\0am": "ab"}], ids=["value", "key"])
def test_a_label_that_cannot_be_stored_is_refused(labels: dict[str, str]) -> None:
    assert _judged(_declared(labels=labels)) == "ErrParameterValuesInvalid"
    enrolled = ENROLLED.model_copy(update={"labels": labels})
    assert _enrolled(enrolled) == "ErrParameterValuesInvalid"


def test_a_declaration_that_contradicts_the_blueprint_is_refused() -> None:
    assert _judged(_declared(mesh_role="standalone")) == "InvalidInput"


def test_a_refusal_names_field_and_rule() -> None:
    with pytest.raises(BrokerError, match=r"spec\.cloudCredentialRef\.name: .* Project 'other'"):
        judge(DECLARATION, project="other", blueprint=BLUEPRINT, credential=CREDENTIAL, cloud=CLOUD)


CREDENTIALED = ENROLLED.model_copy(update={"cloud_credential": "demo-main"})


def _enrolled(declaration: Declaration = ENROLLED, **views: Any) -> str:
    given = {"project": "shop", "credential": None, "cloud": None, **views}
    try:
        judge_enrolled(declaration, **given)
    except RefusedError as error:
        return error.shown_reason
    except BrokerError as error:
        return error.code
    return "accepted"


def test_an_enrolled_resource_needs_neither_blueprint_nor_credential() -> None:
    assert _enrolled() == "accepted"


@pytest.mark.parametrize(
    ("views", "answer"),
    [
        ({"credential": CREDENTIAL, "cloud": CLOUD}, "accepted"),
        ({}, "ErrCredentialNotFound"),
        ({"credential": CREDENTIAL, "cloud": CLOUD, "project": "other"}, "CredentialNotAllowed"),
        ({"credential": CREDENTIAL}, "ErrCloudNotFound"),
        (
            {"credential": CREDENTIAL, "cloud": CLOUD.model_copy(update={"provider": "aws"})},
            "InvalidInput",
        ),
    ],
)
def test_a_credential_that_it_names_is_judged(views: dict[str, Any], answer: str) -> None:
    assert _enrolled(CREDENTIALED, **views) == answer


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"parameters": {"region": "nbg1"}}, id="parameters"),
        pytest.param({"labels": {"": "x"}}, id="labels"),
    ],
)
def test_an_enrolled_resource_has_no_parameters_and_legal_labels(changes: dict[str, Any]) -> None:
    assert _enrolled(ENROLLED.model_copy(update=changes)) == "ErrParameterValuesInvalid"


@pytest.mark.parametrize("accepted", [DECLARATION, CREDENTIALED], ids=["declared", "enrolled"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("provider", "aws"),
        ("cloud_credential", "another"),
        ("injection_strategy", "helm-values"),
        ("mesh_role", "standalone"),
        ("blueprint", "other"),
    ],
)
def test_what_makes_it_the_same_node_is_immutable(
    accepted: Declaration, field: str, value: str
) -> None:
    declared = accepted.model_dump(by_alias=False)
    declared[field] = {"name": value, "version": "v1"} if field == "blueprint" else value
    edited = Declaration.model_validate(declared)

    with pytest.raises(RefusedError) as refused:
        immutable(accepted, edited)

    assert refused.value.shown_reason == "Immutable"


def test_labels_and_retry_may_change() -> None:
    immutable(ENROLLED, ENROLLED.model_copy(update={"labels": {"a": "b"}, "retry": 2}))


CONSTANT = BLUEPRINT.model_copy(
    update={"constants": (Constant(name="namespace", value="machines"),)}
)


@pytest.mark.parametrize(
    ("parameters", "given", "answer"),
    [
        ({"namespace": "machines"}, ("region",), "accepted"),
        ({"namespace": "machines"}, None, "accepted"),
        ({"namespace": "kube-system"}, ("region",), "ErrParameterValuesInvalid"),
        ({"namespace": "kube-system"}, None, "ErrParameterValuesInvalid"),
        ({"namespace": "machines"}, ("namespace", "region"), "ErrParameterValuesInvalid"),
        ({}, ("region",), "ErrParameterValuesInvalid"),
    ],
)
def test_a_constant_is_what_the_blueprint_says(
    parameters: dict[str, Any], given: tuple[str, ...] | None, answer: str
) -> None:
    declared = _declared(parameters={**DECLARATION.parameters, **parameters}, given=given)

    assert _judged(declared, blueprint=CONSTANT) == answer
