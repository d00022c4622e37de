"""Messages of a replacement: what it waits for, and why it ended.

The reasons that status shows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from function.contract.conditions import Reason
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.replacement.replacement import ReplacementStep

SAID: Final = {
    ReplacementStep.WAIT: "Replacement is waiting: the XR must be composing (not paused or "
    "terminating), its declaration accepted, and the reconciler must not be frozen.",
    ReplacementStep.RELEASE: "The node did not register in time; Crossplane is deleting the "
    "machine and will create a new one.",
    ReplacementStep.AWAIT_FUNCTION: "The machine is gone; waiting for the function to stop "
    "composing it.",
    ReplacementStep.FINISH: "The machine is gone; Crossplane will create a new one with a new "
    "token.",
}

EXHAUSTED: Final = Explanation(
    reason=Reason.RECREATIONS_EXHAUSTED,
    message="The machine was recreated as often as registration.attempts allows and no node "
    "registered. Check the machine's console and its connection to the base URL, then increment "
    "spec.retry.",
)

_HELD_BACK: Final = (
    " Its replacement is delayed, because many nodes are overdue at once: look for their common"
    " cause, which new machines do not fix."
)


def under_way(step: ReplacementStep) -> Explanation:
    """Say what a replacement waits for."""
    return Explanation(reason=Reason.RECREATING, message=SAID[step])


def stalled(timeout: timedelta, *, came: bool, held_back: bool = False) -> Explanation:
    """Say that a node did not come in time, or came and never reported."""
    why = _silent(timeout) if came else _overdue(timeout)
    return Explanation(reason=why.reason, message=why.message + _HELD_BACK) if held_back else why


def _overdue(timeout: timedelta) -> Explanation:
    message = (
        f"The node has not registered within {_span(timeout)} of its substrate's readiness. Check "
        "the machine's console and its connection to the base URL, or delete its "
        "ProvisioningRecord to have it recreated."
    )
    return Explanation(reason=Reason.REGISTRATION_TIMEOUT, message=message)


def _silent(timeout: timedelta) -> Explanation:
    message = (
        f"The node registered but has not reported within {_span(timeout)}; the response to its "
        "registration may be lost. Check the machine's console, or delete its ProvisioningRecord "
        "to have it recreated."
    )
    return Explanation(reason=Reason.NEVER_REPORTED, message=message)


def _span(length: timedelta) -> str:
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
