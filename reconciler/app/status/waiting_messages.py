"""Messages of what waits, and the intervals it is polled in.

The reasons that status shows while something else must act, and the pace of polling.
"""

from __future__ import annotations

from typing import Final

from function.contract.conditions import Reason
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.teardown.release import AbsenceBarrier, Release
from reconciler.ports.cluster.substrates import KindNotServedError, NotAllowedError

POLL_FIRST_S: Final = 0.25
POLL_MAX_S: Final = 10.0
POLL_SHARE: Final = 0.05
"""A substrate that has been going for t seconds is looked at every t/20: quick at first,
one GET in ten seconds for one that hangs for hours."""

PIPELINE_S: Final = 120.0
"""Longest reconcile of an XR, its pipeline run included (reference, crossplane §2.11)."""

FENCED: Final = {
    AbsenceBarrier.AWAIT_FUNCTION: Explanation(
        reason=Reason.DEPROVISIONING,
        message="Waiting for the function to stop composing the substrate.",
    ),
    AbsenceBarrier.AWAIT_CROSSPLANE: Explanation(
        reason=Reason.WAITING_FOR_CROSSPLANE,
        message="Waiting for Crossplane to remove its finalizer from the terminating XR.",
    ),
    AbsenceBarrier.AWAIT_PIPELINE: Explanation(
        reason=Reason.WAITING_FOR_CROSSPLANE,
        message="The XR is paused; waiting until its last pipeline run has ended.",
    ),
}

RELEASED: Final = {
    Release.LET_CROSSPLANE_DROP: Explanation(
        reason=Reason.DEPROVISIONING,
        message="The substrate is released; Crossplane is deleting it.",
    ),
    Release.DELETE_OURSELVES: Explanation(
        reason=Reason.DEPROVISIONING, message="The reconciler is deleting the substrate."
    ),
    Release.WAIT_FOR_CROSSPLANE: Explanation(
        reason=Reason.WAITING_FOR_CROSSPLANE,
        message="Waiting for Crossplane to remove its finalizer from the terminating XR.",
    ),
}


def elsewhere(slug: str) -> Explanation:
    """Say of a record that its resource lives on another management cluster.

    Args:
        slug: Which.
    """
    message = (
        f"The resource belongs to management cluster {slug!r}; only the reconciler of that cluster "
        "can tear it down."
    )
    return Explanation(reason=Reason.LIVES_ELSEWHERE, message=message)


def prevented(error: KindNotServedError | NotAllowedError) -> Explanation:
    """Say of what is behind a record that nobody can look at it, or may not do what is due.

    Args:
        error: Which kind, in which group.
    """
    if isinstance(error, NotAllowedError):
        return Explanation(reason=Reason.RIGHTS_MISSING, message=str(error))
    message = (
        f"The substrate's deletion is waiting: {error}. An object that cannot be read counts as "
        "existing; install its CRD or XRD again."
    )
    return Explanation(reason=Reason.KIND_NOT_SERVED, message=message)


def poll_interval_s(elapsed_s: float) -> float:
    """Return how soon to look at a going substrate again, in seconds.

    A share of the time it has been going, between POLL_FIRST_S and POLL_MAX_S.
    """
    return min(POLL_MAX_S, max(POLL_FIRST_S, elapsed_s * POLL_SHARE))


def soonest(*delays_s: float | None) -> float | None:
    """Return the least of some delays in seconds, None being none at all."""
    return min((delay for delay in delays_s if delay is not None), default=None)
