"""Parameters: their limits, what a blueprint may not say, and what an edit comes to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from function.contract.catalog import parameters
from function.contract.catalog.parameter import Constant, Parameter
from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.errors import ContractError
from function.contract.limits import checked

SIZE = {"name": "size", "type": "string", "enum": ["small", "large"], "mutable": True}
DISK = {"name": "disk", "type": "integer", "default": 40, "minimum": 10, "maximum": 2000}
ZONE = {"name": "zone", "type": "string", "required": True, "pattern": "^[a-z]{2}-[0-9]$"}


def blueprint(*listed: dict[str, Any], **constants: Any) -> BlueprintVersionSpec:
    return BlueprintVersionSpec.model_validate(
        {
            "slug": "vm",
            "version": "v1",
            "injectionStrategy": "cloud-init-user-data",
            "providerKinds": ["generic"],
            "xr": {"apiVersion": "b.example.org/v1", "kind": "XVM"},
            "parameters": listed,
            "constants": [{"name": name, "value": value} for name, value in constants.items()],
        }
    )


@pytest.mark.parametrize(
    ("limits", "value", "rule"),
    [
        ({"type": "string", "enum": ["small", "large"]}, "huge", "must be one of small, large"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "A", "must match ^[a-z]+$"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "a" * 513, "must hold at most 512"),
        ({"type": "string", "minLength": 2}, "é", "must hold at least 2 characters"),
        ({"type": "string", "maxLength": 1}, "ab", "must hold at most 1 characters"),
        ({"type": "integer", "minimum": 10}, 9, "must be at least 10"),
        ({"type": "integer", "maximum": 10}, 11.0, "must be at most 10"),
        ({"type": "integer", "enum": [1, 2]}, True, "must be an integer"),
        ({"type": "integer", "enum": [1, 2]}, 3, "must be one of 1, 2"),
    ],
)
def test_a_value_outside_its_limits_is_refused_by_field_and_rule(
    limits: dict[str, Any], value: object, rule: str
) -> None:
    with pytest.raises(ContractError) as refused:
        checked(Parameter.model_validate({"name": "p", **limits}), value)

    assert refused.value.field == "spec.parameters.p"
    assert refused.value.rule.startswith(rule)


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"type": "integer", "pattern": "^a$"}, "pattern is not for the type integer"),
        ({"type": "string", "minimum": 1}, "minimum is not for the type string"),
        ({"type": "boolean", "enum": [True]}, "enum is not for the type boolean"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "minimum must not exceed maximum"),
        ({"type": "string", "minLength": 2, "maxLength": 1}, "minLength must not exceed maxLength"),
        ({"type": "string", "pattern": "(a+)+"}, "pattern must begin with ^"),
        ({"type": "string", "pattern": "^a*$", "maxLength": 600}, "maxLength must be at most 512"),
        ({"type": "string", "enum": ["a", "B"], "pattern": "^[a-z]$"}, "enum: each value must"),
        ({"type": "string", "enum": ["a", 1]}, "enum: each value must be a string"),
        ({"type": "string", "enum": ["a"], "default": "b"}, "default must be one of a"),
        ({"type": "string", "pattern": "^a$", "default": "b"}, "default must match ^a$"),
        ({"type": "integer", "minimum": 5, "default": 4}, "default must be at least 5"),
        ({"type": "string", "default": "a", "required": True}, "default is not for a required"),
    ],
)
def test_a_parameter_that_contradicts_itself_is_no_parameter(
    limits: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        Parameter.model_validate({"name": "p", **limits})

    assert refused.value.errors()[0]["msg"].startswith(rule)


@pytest.mark.parametrize("value", [2**53 + 1, "x" * 4097, 1.5, None, {}])
def test_a_constant_is_a_value_that_an_object_can_hold(value: object) -> None:
    with pytest.raises(ValidationError):
        Constant.model_validate({"name": "c", "value": value})


def test_a_name_is_a_parameter_or_a_constant() -> None:
    with pytest.raises(ValidationError, match="names must be unique"):
        blueprint(SIZE, size="small")


def test_constants_are_added_and_never_set() -> None:
    given = blueprint(DISK, namespace="machines")

    assert parameters.resolve({}, given) == {"disk": 40, "namespace": "machines"}
    with pytest.raises(ContractError, match=r"spec.parameters.namespace: is a constant"):
        parameters.resolve({"namespace": "machines"}, given)


ACCEPTED = parameters.Accepted(
    values={"zone": "eu-1", "disk": 40, "namespace": "machines"}, given=("zone",)
)
OLD = parameters.Accepted(values=ACCEPTED.values, given=None)
"""As a version accepted it that did not say what was given."""

ANOTHER = blueprint({**DISK, "default": 80}, {**ZONE, "pattern": "^us-[0-9]$"}, namespace="other")
"""What stands under the name now."""


@pytest.mark.parametrize("accepted", [ACCEPTED, OLD], ids=["told", "untold"])
def test_what_is_not_edited_stays_whatever_the_blueprint_says_now(
    accepted: parameters.Accepted,
) -> None:
    assert parameters.edited({"zone": "eu-1"}, ANOTHER, accepted) == accepted.values
    assert parameters.edited({"zone": "eu-1"}, blueprint(), accepted) == accepted.values


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"zone": "eu-2"}, "spec.parameters.zone: must match"),
        ({"zone": "eu-1", "namespace": "kube-system"}, "spec.parameters.namespace: is a constant"),
        ({"zone": "eu-1", "disk": True}, "spec.parameters.disk: must be an integer"),
        ({"zone": "eu-1", "colour": "red"}, "spec.parameters.colour: is not a parameter"),
        ({}, "spec.parameters.zone: is required"),
    ],
)
@pytest.mark.parametrize("accepted", [ACCEPTED, OLD], ids=["told", "untold"])
def test_what_is_edited_is_judged_by_the_blueprint_of_today(
    accepted: parameters.Accepted, declared: dict[str, Any], message: str
) -> None:
    with pytest.raises(ContractError, match=message):
        parameters.edited(declared, ANOTHER, accepted)


def test_what_its_author_takes_out_gets_the_default() -> None:
    accepted = parameters.Accepted(values={"disk": 100}, given=("disk",))

    assert parameters.edited({}, blueprint(DISK), accepted) == {"disk": 40}
    assert parameters.edited({}, blueprint(), accepted) == {}


def test_only_mutable_parameters_change_on_a_machine() -> None:
    given = blueprint(SIZE, DISK)

    parameters.assert_mutable(["size"], given)
    with pytest.raises(ContractError) as refused:
        parameters.assert_mutable(["disk", "size"], given)

    assert refused.value.field == "spec.parameters.disk"
    assert refused.value.reason == "Immutable"
    assert "apply a resource of another name" in refused.value.rule


def test_true_is_not_one() -> None:
    assert parameters.changes({"a": 1}, {"a": True}) == ["a"]
    assert parameters.changes({"a": 1, "b": 2}, {"a": 1, "c": 2}) == ["b", "c"]
