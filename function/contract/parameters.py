"""How declared parameters and labels are checked against a blueprint, and completed.

Belongs here: the rules, pure and total; the function applies them for early answers,
the reconciler for the authoritative one. Not here: any reading of objects.
Source: seed 000 `ErrParameterValuesInvalid`; contracts §6 items 1, 2, 5; kinds.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from function.contract.catalog import Parameter
from function.contract.errors import ContractError
from function.contract.record import LABELS_MAX, ParameterValue
from function.contract.strategy import ParameterType

RESERVED: Final = frozenset({"helmValues", "providerSecret"})
"""The injection sites below spec.parameters; no blueprint or user may claim them."""

STRING_MAX_BYTES: Final = 4096
"""Longest string parameter: room for a key or a small script, far below etcd's object limit."""

LABEL_MAX_BYTES: Final = 256
"""Longest label key or value (kinds.md)."""

EXACT_INTEGER_MAX: Final = 2**53
"""Largest integer a protobuf Struct carries exactly (it holds doubles)."""

_PATH = "spec.parameters"


def resolve(declared: Mapping[str, Any], schema: Sequence[Parameter]) -> dict[str, ParameterValue]:
    """Return the declared parameters checked, with defaults for what is absent.

    Args:
        declared: Values as they came from JSON or a protobuf Struct, where integers may
            be whole floats.
        schema: The blueprint's parameters.

    Returns:
        Name to value in the schema's order; a parameter that is neither declared nor has
        a default is left out.

    Raises:
        ContractError: A parameter is reserved, undeclared, null, missing or of another
            type; the first in name order, so that the answer is deterministic.
    """
    known = {parameter.name: parameter for parameter in schema}
    for name in sorted(declared):
        if name in RESERVED:
            raise _error(name, "is reserved for the bootstrap material")
        if name not in known:
            raise _error(name, "is not a parameter of this blueprint")
    resolved: dict[str, ParameterValue] = {}
    for parameter in schema:
        if parameter.name in RESERVED:
            raise _error(parameter.name, "is declared by the blueprint, but reserved")
        if parameter.name in declared:
            resolved[parameter.name] = _checked(parameter, declared[parameter.name])
        elif parameter.required:
            raise _error(parameter.name, "is required by this blueprint")
        elif parameter.default is not None:
            resolved[parameter.name] = _checked(parameter, parameter.default)
    return resolved


def labels(declared: Mapping[str, Any]) -> dict[str, str]:
    """Return the declared labels checked and in key order.

    Raises:
        ContractError: Too many labels, a key or value that is no string, or too long.
    """
    if len(declared) > LABELS_MAX:
        raise ContractError(field="spec.labels", rule=f"must hold at most {LABELS_MAX} labels")
    checked: dict[str, str] = {}
    for key in sorted(declared):
        value = declared[key]
        if not isinstance(value, str):
            raise ContractError(field=f"spec.labels[{key[:63]}]", rule="must be a string")
        if max(len(key.encode()), len(value.encode())) > LABEL_MAX_BYTES or not key:
            rule = f"must have a key and at most {LABEL_MAX_BYTES} bytes"
            raise ContractError(field=f"spec.labels[{key[:63]}]", rule=rule)
        checked[key] = value
    return checked


def _checked(parameter: Parameter, value: object) -> ParameterValue:
    match parameter.type, value:
        case ParameterType.BOOLEAN, bool():
            return bool(value)
        case ParameterType.INTEGER, int() | float() if not isinstance(value, bool):
            if isinstance(value, float) and not value.is_integer():
                raise _error(parameter.name, "must be an integer")
            if abs(value) > EXACT_INTEGER_MAX:
                raise _error(parameter.name, "must lie within 2^53, beyond which it is not exact")
            return int(value)
        case ParameterType.STRING, str():
            if len(value.encode()) > STRING_MAX_BYTES:
                raise _error(parameter.name, f"must hold at most {STRING_MAX_BYTES} bytes")
            return value
        case _, None:
            raise _error(parameter.name, "must not be null; leave it out instead")
        case _:
            article = "an" if parameter.type is ParameterType.INTEGER else "a"
            raise _error(parameter.name, f"must be {article} {parameter.type}")


def _error(name: str, rule: str) -> ContractError:
    return ContractError(field=f"{_PATH}.{name[:63]}", rule=rule, reason="InvalidParameters")
