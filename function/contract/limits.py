"""The limits of a parameter's values, and the check against them.

The limits as a shape, and the judgement of a value. Source: kinds.md, "BlueprintVersion";
docs/decisions/0020.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from function.contract import patterns
from function.contract.errors import ContractError
from function.contract.shape import Shape
from function.contract.strategy import ParameterType

ParameterValue = bool | int | str

STRING_MAX_BYTES: Final = 4096
"""Longest string parameter: room for a key or a small script, far below etcd's object limit."""

EXACT_INTEGER_MAX: Final = 2**53
"""Largest integer a protobuf Struct carries exactly (it holds doubles)."""

UNSTORABLE: Final = "\0"
UNSTORABLE_RULE: Final = "must not hold the character U+0000, which cannot be stored"

ENUM_MAX: Final = 64
"""Most values that a parameter lists."""

_SHOWN_MAX: Final = 256
"""Longest list of values that a message shows, in characters."""

ParameterName = Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
ParameterNames = Annotated[
    tuple[ParameterName, ...],
    Field(max_length=64, description="Names of the parameters that its author gave."),
]
_Length = Annotated[int, Field(ge=0, le=STRING_MAX_BYTES)]
_Bound = Annotated[int, Field(ge=-EXACT_INTEGER_MAX, le=EXACT_INTEGER_MAX)]
_Enum = Annotated[tuple[bool | int | str, ...], Field(min_length=1, max_length=ENUM_MAX)]


class Limits(Shape):
    """A name, a type, and what limits the values."""

    name: ParameterName = Field(description="Name below spec.parameters of the blueprint's XR.")
    type: ParameterType = Field(description="JSON type of its values.")
    enum: _Enum | None = Field(
        default=None, description="The values that it takes, of its type; not for a boolean."
    )
    pattern: Annotated[str, Field(max_length=patterns.PATTERN_MAX)] | None = Field(
        default=None,
        description="Regular expression from ^ to $ that the whole string matches, in the language "
        "of docs/blueprints.md; the string then has at most 512 characters.",
    )
    min_length: _Length | None = Field(default=None, description="Fewest characters of a string.")
    max_length: _Length | None = Field(default=None, description="Most characters of a string.")
    minimum: _Bound | None = Field(default=None, description="Smallest value of an integer.")
    maximum: _Bound | None = Field(default=None, description="Largest value of an integer.")


def checked(parameter: Limits, value: object) -> ParameterValue:
    """Return a value as the parameter's type, within its limits.

    Args:
        parameter: Its limits, consistent in themselves.
        value: As it came from JSON or a protobuf Struct, where integers may be whole floats.

    Raises:
        ContractError: It breaks a rule; the message holds the rule and never the value.
    """
    typed = _typed(parameter, value)
    rule = _outside(parameter, typed)
    if rule is not None:
        raise fault(parameter.name, rule)
    return typed


def fault(name: str, rule: str) -> ContractError:
    """Return the error about a declared parameter."""
    return ContractError(
        field=f"spec.parameters.{name[:63]}", rule=rule, reason="InvalidParameters"
    )


def _typed(parameter: Limits, value: object) -> ParameterValue:
    match parameter.type, value:
        case ParameterType.BOOLEAN, bool():
            return bool(value)
        case ParameterType.INTEGER, int() | float() if not isinstance(value, bool):
            if isinstance(value, float) and not value.is_integer():
                raise fault(parameter.name, "must be an integer")
            if abs(value) > EXACT_INTEGER_MAX:
                raise fault(
                    parameter.name, "must be between -2^53 and 2^53, the range of exact integers"
                )
            return int(value)
        case ParameterType.STRING, str():
            if UNSTORABLE in value:
                raise fault(parameter.name, UNSTORABLE_RULE)
            if len(value.encode()) > STRING_MAX_BYTES:
                raise fault(parameter.name, f"must hold at most {STRING_MAX_BYTES} bytes")
            return value
        case _, None:
            raise fault(parameter.name, "must not be null; remove it instead")
        case _:
            article = "an" if parameter.type is ParameterType.INTEGER else "a"
            raise fault(parameter.name, f"must be {article} {parameter.type}")


def _outside(parameter: Limits, value: ParameterValue) -> str | None:
    """Return the limit that a value of the right type breaks, or None."""
    if parameter.enum is not None and value not in parameter.enum:
        listed = ", ".join(map(str, parameter.enum))
        return f"must be one of {listed}" if len(listed) <= _SHOWN_MAX else "must be in its enum"
    if isinstance(value, str):
        return _outside_text(parameter, value)
    if parameter.minimum is not None and value < parameter.minimum:
        return f"must be at least {parameter.minimum}"
    if parameter.maximum is not None and value > parameter.maximum:
        return f"must be at most {parameter.maximum}"
    return None


def _outside_text(parameter: Limits, value: str) -> str | None:
    if parameter.min_length is not None and len(value) < parameter.min_length:
        return f"must hold at least {parameter.min_length} characters"
    most = parameter.max_length
    if most is None:
        most = STRING_MAX_BYTES if parameter.pattern is None else patterns.MATCHED_MAX
    if len(value) > most:
        return f"must hold at most {most} characters"
    if parameter.pattern is not None and not patterns.matches(parameter.pattern, value):
        return f"must match {parameter.pattern}"
    return None
