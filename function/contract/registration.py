"""The policy for a node that does not register in time, as a blueprint or a step sets it.

The shape of that wish and the length of its time. Whatever declares a node may import it.
Source: issue 5, "Registration timeout"; docs/decisions/0014.
"""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum, unique
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from function.contract.shape import Shape

TIMEOUT_MIN: Final = timedelta(minutes=1)
"""A machine needs that long to boot; anything shorter would recreate healthy ones."""

TIMEOUT_MAX: Final = timedelta(hours=24)
"""No token can be used for longer (design §5, "Tokens")."""

ATTEMPTS_MAX: Final = 10
"""A machine that failed ten times fails for a reason that one more does not fix."""

_DURATION: Final = re.compile(r"(?=.)(?:([0-9]{1,5})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,5})s)?")


@unique
class RegistrationPolicy(StrEnum):
    """What the reconciler does with a machine whose node does not register in time."""

    KEEP = "Keep"
    RECREATE = "Recreate"


def length_of(text: str) -> timedelta:
    """Return the length of a timeout, which was checked.

    Raises:
        ValueError: It is no duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        message = "must be a duration such as 15m or 1h30m"
        raise ValueError(message)
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def _in_bounds(text: str) -> str:
    if not TIMEOUT_MIN <= length_of(text) <= TIMEOUT_MAX:
        message = "must lie between 1m and 24h"
        raise ValueError(message)
    return text


Timeout = Annotated[
    str,
    Field(pattern=r"^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$", max_length=18),
    AfterValidator(_in_bounds),
]
"""A time that a blueprint gives a machine: 1m to 24h, whole seconds."""


class Registration(Shape):
    """The deadline of a node's registration and the policy when it passes."""

    policy: RegistrationPolicy = Field(
        default=RegistrationPolicy.KEEP,
        description="Keep keeps the machine, whose node may still register; Recreate replaces "
        "the machine and issues a new token.",
    )
    timeout: Timeout | None = Field(
        default=None,
        description="Time from the machine's readiness to its node's registration, and from there "
        "to its first report, 1m to 24h, for example 15m. Absent: the reconciler's setting.",
    )
    attempts: Annotated[int, Field(ge=1, le=ATTEMPTS_MAX)] = Field(
        default=3,
        description="How often the machine is recreated before its record stalls; incrementing "
        "spec.retry resets the count.",
    )

    @property
    def length(self) -> timedelta | None:
        """The timeout; None: the reconciler's own."""
        return None if self.timeout is None else length_of(self.timeout)
