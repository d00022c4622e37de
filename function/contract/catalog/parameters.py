"""Checks declared parameters against a blueprint, and completes them.

Parameters are resolved once, when a declaration is accepted: what its author gave, the defaults
of what he left out, the platform's constants. From then on the accepted values stand, whatever
happens to the blueprint, and only what the author changes is judged again.

The rules, pure and total; the function applies them for early answers, the reconciler for
the authoritative one. Source: seed 000 `ErrParameterValuesInvalid`; contracts §6 items 1,
2, 5; kinds.md; docs/decisions/0020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from function.contract.catalog.parameter import Parameter
from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.limits import ParameterValue, checked, fault

RESERVED: Final = frozenset({"helmValues", "providerSecret"})
"""The injection sites below spec.parameters; no blueprint or user may claim them."""

FIXED: Final = (
    "cannot change while the machine exists; restore the old value, apply a resource of another "
    "name with the new value, and delete this one once the other is Ready"
)
"""How a machine gets another value of a parameter that is not mutable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The parameters of a declaration that was accepted.

    Attributes:
        values: Resolved, constants among them.
        given: Names that the author gave; None: accepted by a version that did not say.
    """

    values: Mapping[str, ParameterValue]
    given: tuple[str, ...] | None


def resolve(
    declared: Mapping[str, Any], blueprint: BlueprintVersionSpec
) -> dict[str, ParameterValue]:
    """Return the parameters of a new declaration: checked, with defaults and constants.

    Args:
        declared: Values as they came from JSON or a protobuf Struct, where integers may
            be whole floats.
        blueprint: What says which there are.

    Returns:
        Name to value; a parameter that is neither declared nor has a default is left out.

    Raises:
        ContractError: A parameter is reserved, a constant, undeclared, missing or outside its
            limits; first those that may not be set, in the order of names.
    """
    known = _known(blueprint)
    for name in sorted(declared):
        _settable(name, blueprint, known)
    resolved: dict[str, ParameterValue] = {}
    for name, parameter in known.items():
        if name in declared:
            resolved[name] = checked(parameter, declared[name])
        else:
            resolved |= _left_out(parameter)
    return resolved | _constants(blueprint)


def edited(
    declared: Mapping[str, Any], blueprint: BlueprintVersionSpec, accepted: Accepted
) -> dict[str, ParameterValue]:
    """Return the parameters of a declaration whose earlier one was accepted.

    What its author does not touch stays as accepted; what he takes out gets today's default.

    Args:
        declared: As for `resolve`.
        blueprint: What stands under its name today.
        accepted: What was accepted.

    Raises:
        ContractError: A value that was changed breaks a rule, as for `resolve`.
    """
    known = _known(blueprint)
    resolved: dict[str, ParameterValue] = {}
    for name in sorted(declared):
        if name in accepted.values and _same(declared[name], accepted.values[name]):
            resolved[name] = accepted.values[name]
        else:
            resolved[name] = checked(_settable(name, blueprint, known), declared[name])
    for name in sorted(accepted.values.keys() - declared.keys()):
        parameter = known.get(name)
        if not _was_given(name, parameter, accepted):
            resolved[name] = accepted.values[name]
        elif parameter is not None:
            resolved |= _left_out(parameter)
    return resolved


def changes(
    accepted: Mapping[str, ParameterValue], declared: Mapping[str, ParameterValue]
) -> list[str]:
    """Return the names of what differs between two resolved sets, in order."""
    return sorted(
        name
        for name in accepted.keys() | declared.keys()
        if name not in accepted or name not in declared or not _same(declared[name], accepted[name])
    )


def assert_mutable(names: Sequence[str], blueprint: BlueprintVersionSpec) -> None:
    """Hold an edit to what may change on a machine that exists.

    Args:
        names: What the edit changes, as of `changes`.
        blueprint: What says which may.

    Raises:
        ContractError: One of them may not; says how the machine is replaced.
    """
    mutable = {each.name for each in blueprint.parameters if each.mutable}
    for name in names:
        if name not in mutable:
            field = f"spec.parameters.{name[:63]}"
            raise ContractError(field=field, rule=FIXED, reason=Reason.IMMUTABLE)


def _known(blueprint: BlueprintVersionSpec) -> dict[str, Parameter]:
    for name in (*(each.name for each in blueprint.parameters), *_constants(blueprint)):
        if name in RESERVED:
            raise fault(name, "is declared by the blueprint, but is a reserved name")
    return {parameter.name: parameter for parameter in blueprint.parameters}


def _settable(
    name: str, blueprint: BlueprintVersionSpec, known: Mapping[str, Parameter]
) -> Parameter:
    if name in RESERVED:
        raise fault(name, "is reserved for the bootstrap material")
    if name in _constants(blueprint):
        raise fault(name, "is a constant of this blueprint; remove it from spec.parameters")
    if name not in known:
        raise fault(name, "is not a parameter of this blueprint")
    return known[name]


def _was_given(name: str, parameter: Parameter | None, accepted: Accepted) -> bool:
    """Whether the author gave it; what is required was, where nothing else tells."""
    if accepted.given is None:
        return parameter is not None and parameter.required
    return name in accepted.given


def _left_out(parameter: Parameter) -> dict[str, ParameterValue]:
    if parameter.required:
        raise fault(parameter.name, "is required by this blueprint")
    if parameter.default is None:
        return {}
    return {parameter.name: checked(parameter, parameter.default)}


def _constants(blueprint: BlueprintVersionSpec) -> dict[str, ParameterValue]:
    return {constant.name: constant.value for constant in blueprint.constants}


def _same(one: object, other: ParameterValue) -> bool:
    """Whether two values are one; in Python, True is 1."""
    return isinstance(one, bool) is isinstance(other, bool) and one == other
