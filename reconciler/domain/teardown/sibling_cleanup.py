"""The table of sibling cleanup, once the node and its substrate are gone.

A sibling (a network, a volume) belongs to the composite and often to several nodes. The
hold kept it; the garbage collector was refused and may be in a back-off of minutes, so that
somebody else must delete what nobody composes any more. That decision, total over what live
GETs say. Source: design §3, `hold`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from reconciler.domain.teardown.release import XRFacts


@unique
class SiblingCleanup(StrEnum):
    """The cleanup of a sibling."""

    KEEP = "Keep"
    """Nothing: another node needs it, and its aggregate remembers it."""

    LEAVE = "Leave"
    """No more than the label: it is gone, or somebody else's to delete."""

    AWAIT_CROSSPLANE = "AwaitCrossplane"
    """No more than the label yet: a pipeline run in flight could make it again."""

    DELETE = "Delete"
    """Delete it: its composite is gone or going, and the collector may not come soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingFacts:
    """The known facts about a sibling.

    Attributes:
        exists: It is there.
        held: It carries the hold.
        needed: Another aggregate that is not Deleted lists it.
        controlled: The composite that the aggregate belonged to is its controller.
        terminating: Somebody deleted it already.
        xr: That composite.
        pipeline_over: The aggregate is Deleted for longer than a pipeline run lasts.
    """

    exists: bool
    held: bool
    needed: bool
    controlled: bool
    terminating: bool
    xr: XRFacts
    pipeline_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingStep:
    """The next step for a sibling.

    Attributes:
        parting: What happens to it.
        let_go: The hold comes off.
        settled: Nothing is left to do or to look after.
    """

    parting: SiblingCleanup
    let_go: bool
    settled: bool


def next_sibling_step(facts: SiblingFacts) -> SiblingStep:
    """Decide one look at a sibling.

    A pipeline run that saw the hold puts it on again when it ends after it was taken off,
    so that while one may be in flight a sibling is looked at again (docs/decisions/0006).

    Total: every combination maps to a step; the hold comes off nothing that is needed.
    """
    parting = _parting(facts)
    let_go = facts.exists and facts.held and parting is not SiblingCleanup.KEEP
    quiet = facts.pipeline_over or not facts.xr.composing
    settled = parting is SiblingCleanup.KEEP or (
        parting is SiblingCleanup.LEAVE and quiet and not let_go
    )
    return SiblingStep(parting=parting, let_go=let_go, settled=settled)


def _parting(facts: SiblingFacts) -> SiblingCleanup:
    if facts.needed:
        return SiblingCleanup.KEEP
    if not facts.exists or not facts.controlled or facts.terminating:
        return SiblingCleanup.LEAVE
    if facts.xr.exists and not facts.xr.terminating:
        return SiblingCleanup.LEAVE
    return SiblingCleanup.AWAIT_CROSSPLANE if facts.xr.composing else SiblingCleanup.DELETE
