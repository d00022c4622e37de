"""The rules by which parameters are accepted, first and as an edit.

The authoritative judgement; the rules themselves are the contract's, which the function
applies too. Source: docs/decisions/0020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from function.contract.catalog import parameters
from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.labels import checked_labels
from function.contract.limits import ParameterValue
from function.contract.record import Declaration
from reconciler.domain.aggregate.errors import ParameterValuesInvalidError, RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The accepted declaration before an edit.

    Attributes:
        accepted: That declaration.
        exists: Whether its machine is there, of which only mutable parameters may change.
    """

    accepted: Declaration
    exists: bool


def edits(accepted: Declaration, declared: Declaration) -> bool:
    """Tell whether an edit changes a parameter of what was accepted."""
    return bool(parameters.changes(accepted.parameters, declared.parameters))


def judge(declaration: Declaration, blueprint: BlueprintVersionSpec, before: Before | None) -> None:
    """Accept a declaration's parameters and labels, or say what is wrong with them.

    Args:
        declaration: What the function resolved.
        blueprint: What stands under its blueprint's name today.
        before: What was accepted before; None: nothing was.

    Raises:
        ParameterValuesInvalidError: A value breaks a rule of the blueprint.
        RefusedError: A machine exists, and the blueprint does not let it change so.
    """
    declared = declaration.parameters
    try:
        checked_labels(declaration.labels)
        if before is None:
            resolved = parameters.resolve(_given(declaration, blueprint), blueprint)
        else:
            values = before.accepted.parameters
            stands = parameters.Accepted(values=values, given=tuple(values))
            resolved = parameters.edited(declared, blueprint, stands)
            if before.exists:
                changed = parameters.changes(values, declared)
                parameters.assert_mutable(changed, blueprint)
    except ContractError as error:
        if error.reason == Reason.IMMUTABLE:
            raise RefusedError(str(error), reason=Reason.IMMUTABLE) from error
        raise ParameterValuesInvalidError(str(error)) from error
    if parameters.changes(resolved, declared):
        message = "spec.declaration.parameters: must be complete; the function applies defaults"
        raise ParameterValuesInvalidError(message)


def _given(
    declaration: Declaration, blueprint: BlueprintVersionSpec
) -> Mapping[str, ParameterValue]:
    """Return what its author gave; of a function that does not say, all but the constants."""
    constants = {each.name for each in blueprint.constants}
    names = declaration.given
    if names is None:
        names = tuple(name for name in declaration.parameters if name not in constants)
    return {name: value for name, value in declaration.parameters.items() if name in names}
