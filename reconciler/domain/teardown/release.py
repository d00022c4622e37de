"""The table of release: who deletes the substrate once the node is out (design §2).

One actor deletes. While the XR composes, Crossplane drops the substrate as soon as the
function stops composing it; where nothing composes any more, the reconciler deletes; where
a pipeline run may still be in flight, nobody does. That decision, total over what a live
GET of XR and substrate says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique


@unique
class Release(StrEnum):
    """The next step of releasing a substrate that still exists."""

    LET_CROSSPLANE_DROP = "LetCrossplaneDrop"
    DELETE_OURSELVES = "DeleteOurselves"
    WAIT_FOR_CROSSPLANE = "WaitForCrossplane"


@dataclass(frozen=True, slots=True, kw_only=True)
class XRFacts:
    """The facts of a live GET of the composite resource.

    Attributes:
        exists: It exists with the uid that controls the record.
        terminating: It has a deletionTimestamp.
        composing_finalizer: It still carries Crossplane's finalizer.
        paused: It carries `crossplane.io/paused: "true"`.
        settled_at: When it became what its Composition wants, synced and ready; None while it
            is not, or does not say since when.
    """

    exists: bool
    terminating: bool
    composing_finalizer: bool
    paused: bool
    settled_at: datetime | None = None

    @property
    def composing(self) -> bool:
        """Whether a pipeline run of it may be in flight, or may come."""
        return self.exists and (
            not self.terminating or (self.composing_finalizer and not self.paused)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsenceFacts:
    """The facts that are known when a live GET finds no substrate.

    Attributes:
        xr: The composite resource.
        published: The function was once allowed to compose the substrate.
        acknowledged: It has said that it saw `substrate: Absent`.
        seen: The substrate was there once during this teardown, and let go.
        pipeline_over: The deletion was requested longer ago than a pipeline run lasts.
    """

    xr: XRFacts
    published: bool
    acknowledged: bool
    seen: bool
    pipeline_over: bool


@unique
class AbsenceBarrier(StrEnum):
    """The verdict on a "not found": accepted, or what to wait for."""

    PASSED = "Passed"
    AWAIT_FUNCTION = "AwaitFunction"
    AWAIT_CROSSPLANE = "AwaitCrossplane"
    AWAIT_PIPELINE = "AwaitPipeline"


@unique
class FinalizerStep(StrEnum):
    """The step for a record whose substrate and siblings are gone."""

    TAKE_FINALIZER_OFF = "TakeFinalizerOff"
    AWAIT_FUNCTION = "AwaitFunction"


def next_finalizer_step(*, terminating: bool) -> FinalizerStep:
    """Decide whether a record may go.

    One that is drained (`spec.drain`) terminates only when the function drops it; until
    then the function would put the finalizer on again.
    """
    return FinalizerStep.TAKE_FINALIZER_OFF if terminating else FinalizerStep.AWAIT_FUNCTION


def teardown_asked(*, terminating: bool, drain: bool) -> bool:
    """Tell whether a record asks for its teardown: somebody deletes it, or its step ended it."""
    return terminating or drain


def next_release(xr: XRFacts) -> Release:
    """Decide who deletes.

    Total: an XR that is gone or paused, or terminates without Crossplane's finalizer, is
    composed by nobody; one that terminates with it may have a pipeline run in flight, up
    to two minutes (reference, crossplane §2.11); any other composes.
    """
    if not xr.exists or xr.paused:
        return Release.DELETE_OURSELVES
    if not xr.terminating:
        return Release.LET_CROSSPLANE_DROP
    if xr.composing_finalizer:
        return Release.WAIT_FOR_CROSSPLANE
    return Release.DELETE_OURSELVES


def next_barrier(facts: AbsenceFacts) -> AbsenceBarrier:
    """Decide whether a substrate that is not there will also stay away.

    A run in flight may still create it. Runs of one XR are serial, so a run that saw
    `Absent` comes after every run that did not: its acknowledgement is the fence. An XR
    that Crossplane let go of has no run; a paused one may have its last one, the one that
    creates, which ends with the reconcile's two minutes.

    Total: every combination maps to an answer.
    """
    if not facts.published or facts.acknowledged or not facts.xr.exists:
        return AbsenceBarrier.PASSED
    if facts.xr.paused:
        return (
            AbsenceBarrier.PASSED
            if facts.seen or facts.pipeline_over
            else AbsenceBarrier.AWAIT_PIPELINE
        )
    if not facts.xr.terminating:
        return AbsenceBarrier.AWAIT_FUNCTION
    return (
        AbsenceBarrier.AWAIT_CROSSPLANE if facts.xr.composing_finalizer else AbsenceBarrier.PASSED
    )
