"""The messages of a record that makes progress.

A reason and a sentence per phase. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from function.contract.conditions import Reason
from function.contract.strategy import Phase

_TOLD: Final[dict[Phase, tuple[str, str]]] = {
    Phase.PENDING: (Reason.WAITING_FOR_SUBSTRATE, "The substrate is being composed."),
    Phase.PROVISIONING: (
        Reason.WAITING_FOR_SUBSTRATE,
        "The substrate exists but is not ready yet.",
    ),
    Phase.ENROLLING: (
        Reason.WAITING_FOR_REGISTRATION,
        "The substrate is ready, but its node has not registered yet.",
    ),
}


def explain(phase: Phase | None) -> tuple[str, str]:
    """Return the reason and the sentence of a phase; None: nothing was accepted yet."""
    if phase is None:
        return Reason.PROGRESSING, "The declaration is being checked."
    return _TOLD.get(phase, (phase.value, f"The resource is in phase {phase.value}."))


def failed(failure: str, *, retry: int, before: str) -> str:
    """Return which fact keeps a resource Failed, so that a retry is answered by it, too.

    Args:
        failure: What the substrate reports; empty when it reports no failure any more.
        retry: The accepted `spec.retry`.
        before: What was said last; it stays while only request ids, times and counters change.
    """
    if not failure:
        return "The substrate reports no terminal failure any more. Increment spec.retry."
    after = f"With spec.retry {retry} accepted, the substrate" if retry else "The substrate"
    head = f"{after} reports: "
    told = f"{head}{failure.rstrip('. ')}. Fix the cause, then increment spec.retry."
    same = before.startswith(head) and shape(before) == shape(told)
    return before if same else told


_VOLATILE: Final = re.compile(r"[^\s,;:()\[\]{}\"']*[0-9][^\s,;:()\[\]{}\"']*")


def shape(words: str) -> str:
    """Return words without all that holds a digit: request ids, times, counters."""
    return _VOLATILE.sub("#", words)
