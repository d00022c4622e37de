"""The conditions that a blueprint or a step declares as terminal failures.

The shape of that word and its default. Whatever declares a node may import it. Source:
docs/decisions/0021.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from function.contract.conditions import ConditionType
from function.contract.shape import Shape


class TerminalCondition(Shape):
    """A condition of the substrate that means it failed for good."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description="The condition's type."
    )
    status: Literal["True", "False"] = Field(
        default="True", description="The status that means failure."
    )


TerminalConditions = Annotated[tuple[TerminalCondition, ...], Field(max_length=16)]
"""Any of them is enough; none: it never fails for good."""

USUAL: Final = (TerminalCondition(type=ConditionType.PROVISIONING_FAILED),)
"""What is looked for where nobody says otherwise."""
