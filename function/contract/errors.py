"""Errors in declared input, as values that name a field and a rule.

The one error family of the contract.
"""

from __future__ import annotations


class ContractError(ValueError):
    """A declared value breaks a rule of the contract.

    The message names the field and the rule and never a value, because some fields
    stand next to a token.

    Attributes:
        field: Dotted path of the offending field, for example `spec.parameters.region`.
        rule: The rule it breaks, as a phrase that follows the field's name.
        reason: CamelCase reason for a condition.
    """

    def __init__(self, *, field: str, rule: str, reason: str = "InvalidInput") -> None:
        self.field = field
        self.rule = rule
        self.reason = reason
        super().__init__(f"{field}: {rule}")


def forget_frames(error: ContractError) -> None:
    """Take from an error that is kept as a value where it was raised.

    A traceback holds the values of every frame on its way, a token among them, for as long
    as the error is there.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
