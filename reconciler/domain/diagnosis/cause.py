"""What a row of the table of diagnosis answers, and how answers are made of conditions."""

from __future__ import annotations

from dataclasses import dataclass

from function.contract.conditions import Reason
from reconciler.domain.diagnosis.facts import ConditionFacts, ObjectFacts
from reconciler.domain.diagnosis.remedies import REMEDIES, Remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What a row found.

    Attributes:
        culprit: The object that says so.
        remedy: Who has to act, and how.
        reason: A reason of ours, or of whoever wrote the condition.
        explanation: The condition's message, or what its absence means.
        since: When it began (RFC 3339); empty when unknown.
        ready: Nothing is wrong.
        found: There is such a resource.
    """

    culprit: ObjectFacts
    remedy: Remedy
    reason: str
    explanation: str
    since: str = ""
    ready: bool = False
    found: bool = True


def said_by(culprit: ObjectFacts, said: ConditionFacts) -> Cause:
    """Cause with a condition of ours; a reason that a provider gave is the provider's."""
    known = said.reason in Reason.__members__.values()
    remedy = REMEDIES[Reason(said.reason)] if known else REMEDIES[Reason.FAILED]
    return foreign(culprit, said, remedy)


def foreign(culprit: ObjectFacts, said: ConditionFacts, remedy: Remedy) -> Cause:
    """Cause with a condition that somebody else wrote, and the newest warning about it."""
    own = said.message or said.reason
    parts = [own, culprit.warning if culprit.warning not in own else ""]
    return Cause(
        culprit=culprit,
        remedy=remedy,
        reason=said.reason or "NotReady",
        explanation=": ".join(filter(None, parts)) or "it says nothing about itself yet",
        since=said.since,
    )


def stated(culprit: ObjectFacts, reason: str, explanation: str, remedy: Remedy) -> Cause:
    """Cause with what no condition says."""
    return Cause(
        culprit=culprit,
        remedy=remedy,
        reason=reason,
        explanation=explanation,
        since=culprit.deleting_since or culprit.created,
    )
