"""What a machine whose node does not come waits for, in words.

Belongs here: the reasons that status shows. Not here: deciding them
(`domain.broker.recreation`). `app.recreation` imports it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from function.contract.conditions import Reason
from reconciler.domain.broker.recreation import Step
from reconciler.domain.broker.verdicts import Why

SAID: Final = {
    Step.WAIT: "The machine is made anew once its XR composes, its declaration is accepted, and "
    "what is seen of the cluster is believed.",
    Step.RELEASE: "Its node did not come; Crossplane is deleting the machine, a new one follows.",
    Step.AWAIT_FUNCTION: "The machine is gone; the function is still to see that it must stop.",
    Step.FINISH: "The machine is gone; a new one follows with a new token.",
}

EXHAUSTED: Final = Why(
    reason=Reason.RECREATIONS_EXHAUSTED,
    message="Its machine was made anew as often as its blueprint allows, and no node came; look "
    "at the machine's console and its way to the base URL, then raise spec.retry.",
)

_HELD_BACK: Final = (
    " It is made anew once others are: many at once have a common cause, which a new machine"
    " does not mend."
)


def under_way(step: Step) -> Why:
    """Say what a recreation waits for."""
    return Why(reason=Reason.RECREATING, message=SAID[step])


def stalled(timeout: timedelta, *, came: bool, held_back: bool = False) -> Why:
    """Say that a node did not come in time, or came and never reported."""
    why = _silent(timeout) if came else _overdue(timeout)
    return Why(reason=why.reason, message=why.message + _HELD_BACK) if held_back else why


def _overdue(timeout: timedelta) -> Why:
    message = (
        f"The node has not registered within {_span(timeout)} of its substrate's readiness; look "
        "at the machine's console and its way to the base URL, or recreate the substrate."
    )
    return Why(reason=Reason.REGISTRATION_TIMEOUT, message=message)


def _silent(timeout: timedelta) -> Why:
    message = (
        f"The node registered and has not reported within {_span(timeout)}; the answer to its "
        "registration may be lost. Look at the machine's console, or recreate the substrate."
    )
    return Why(reason=Reason.NEVER_REPORTED, message=message)


def _span(length: timedelta) -> str:
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
