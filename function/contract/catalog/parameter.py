"""One parameter of a blueprint, and one constant.

The two shapes, and the rules between a parameter's own fields. Source: kinds.md,
"BlueprintVersion"; docs/decisions/0020.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from function.contract import patterns
from function.contract.errors import ContractError
from function.contract.limits import Limits, ParameterName, ParameterValue, checked
from function.contract.shape import Shape
from function.contract.strategy import ParameterType

_OF_STRINGS: Final = ("pattern", "min_length", "max_length")
_OF_INTEGERS: Final = ("minimum", "maximum")
_APPLICABLE: Final = {
    ParameterType.BOOLEAN: (),
    ParameterType.INTEGER: ("enum", *_OF_INTEGERS),
    ParameterType.STRING: ("enum", *_OF_STRINGS),
}


class Parameter(Limits):
    """One parameter that a blueprint declares."""

    required: bool = Field(
        default=False, description="Whether a declaration must give it; then it has no default."
    )
    default: bool | int | str | None = Field(
        default=None,
        description="Of the parameter's type and within its limits; only where it is not required.",
    )
    mutable: bool = Field(
        default=False,
        description="Whether an edit reaches a machine that exists; otherwise it is refused.",
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> Parameter:
        rule = _inconsistent(self) or _unfit(self)
        if rule is not None:
            raise _fault(rule)
        return self


class Constant(Shape):
    """One value that the platform gives the blueprint's XR, and no declaration."""

    name: ParameterName = Field(description="Name below spec.parameters of the blueprint's XR.")
    value: StrictBool | StrictInt | StrictStr = Field(
        description="A boolean, an integer within 2^53 or a string of at most 4096 bytes."
    )

    @model_validator(mode="after")
    def _value_fits(self) -> Constant:
        try:
            checked(Limits(name=self.name, type=_type(self.value)), self.value)
        except ContractError as error:
            rule = f"value {error.rule}"
            raise _fault(rule) from error
        return self


def _fault(rule: str) -> PydanticCustomError:
    return PydanticCustomError("blueprint_inconsistent", "{rule}", {"rule": rule})


def _inconsistent(parameter: Parameter) -> str | None:
    """Return the first rule that a parameter's own fields break, as field and rule."""
    for name in ("enum", *_OF_STRINGS, *_OF_INTEGERS):
        if name not in _APPLICABLE[parameter.type] and getattr(parameter, name) is not None:
            return f"{_wire(name)} is not for the type {parameter.type}"
    for least, most in (("min_length", "max_length"), ("minimum", "maximum")):
        low, high = getattr(parameter, least), getattr(parameter, most)
        if low is not None and high is not None and low > high:
            return f"{_wire(least)} must not exceed {_wire(most)}"
    wrong = None if parameter.pattern is None else patterns.problem(parameter.pattern)
    if wrong is not None:
        return f"pattern {wrong}"
    if parameter.pattern is not None and (parameter.max_length or 0) > patterns.MATCHED_MAX:
        return f"maxLength must be at most {patterns.MATCHED_MAX} where there is a pattern"
    return None


def _unfit(parameter: Parameter) -> str | None:
    """Return what is wrong with the values that the blueprint itself lists."""
    try:
        for value in parameter.enum or ():
            checked(parameter, value)
    except ContractError as broken:
        return f"enum: each value {broken.rule}"
    if parameter.default is None:
        return None
    if parameter.required:
        return "default is not for a required parameter"
    try:
        checked(parameter, parameter.default)
    except ContractError as broken:
        return f"default {broken.rule}"
    return None


def _wire(name: str) -> str:
    head, _, tail = name.partition("_")
    return head + tail.capitalize()


def _type(value: ParameterValue) -> ParameterType:
    match value:
        case bool():
            return ParameterType.BOOLEAN
        case int():
            return ParameterType.INTEGER
        case str():
            return ParameterType.STRING
