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
    ReplacementStep.WAIT: "The machine is made anew once its XR composes, its declaration is "
    "accepted, and what is seen of the cluster is believed.",
    ReplacementStep.RELEASE: "Its node did not come; Crossplane is deleting the machine, a new "
    "one follows.",
    ReplacementStep.AWAIT_FUNCTION: "The machine is gone; the function is still to see that it "
    "must stop.",
    ReplacementStep.FINISH: "The machine is gone; a new one follows with a new token.",
}

EXHAUSTED: Final = Explanation(
    reason=Reason.RECREATIONS_EXHAUSTED,
    message="Its machine was made anew as often as its blueprint allows, and no node came; look "
    "at the machine's console and its way to the base URL, then raise spec.retry.",
)

_HELD_BACK: Final = (
    " It is made anew once others are: many at once have a common cause, which a new machine"
    " does not mend."
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
        f"The node has not registered within {_span(timeout)} of its substrate's readiness; look "
        "at the machine's console and its way to the base URL, or recreate the substrate."
    )
    return Explanation(reason=Reason.REGISTRATION_TIMEOUT, message=message)


def _silent(timeout: timedelta) -> Explanation:
    message = (
        f"The node registered and has not reported within {_span(timeout)}; the answer to its "
        "registration may be lost. Look at the machine's console, or recreate the substrate."
    )
    return Explanation(reason=Reason.NEVER_REPORTED, message=message)


def _span(length: timedelta) -> str:
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
