"""The messages of a record that makes progress.

A reason and a sentence per phase. Pure.
"""

from __future__ import annotations

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
