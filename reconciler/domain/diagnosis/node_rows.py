"""The rows of the table of diagnosis that look at a node: its record, then its substrate."""

from __future__ import annotations

from typing import Final

from function.contract.conditions import ConditionType, Reason
from reconciler.domain.diagnosis.cause import Cause, foreign, said_by, stated
from reconciler.domain.diagnosis.facts import ConditionFacts, DiagnosisFacts, NodeFacts, ObjectFacts
from reconciler.domain.diagnosis.remedies import REMEDIES
from reconciler.domain.record.unready import REFUSALS

READY: Final = "Ready"
AWAITED: Final = Reason.WAITING_FOR_RECONCILER


def of_a_stalled_node(facts: DiagnosisFacts) -> Cause | None:
    """Return the first node that somebody has to act on."""
    return next(filter(None, map(_stall, facts.nodes)), None)


def _stall(node: NodeFacts) -> Cause | None:
    stalled = node.record.condition(ConditionType.STALLED, "True")
    said = stalled or node.record.condition(ConditionType.ADMITTED, "False")
    return None if said is None else _below(node, said) or said_by(node.record, said)


def of_a_waiting_node(facts: DiagnosisFacts) -> Cause | None:
    """Return the first node that is not Ready."""
    return next(filter(None, map(_wait, facts.nodes)), None)


def _wait(node: NodeFacts) -> Cause | None:
    record = node.record
    if ConditionType.READY not in record.conditions:
        text = "the reconciler has written no status: it is not running, or does not lead"
        return stated(record, AWAITED, text, REMEDIES[AWAITED])
    said = record.condition(ConditionType.READY, "False", "Unknown")
    return None if said is None else _below(node, said) or said_by(record, said)


_OF_THE_SUBSTRATE: Final = frozenset(
    {Reason.PROVISIONING_TIMEOUT, Reason.WAITING_FOR_SUBSTRATE, Reason.FAILED}
)
"""Reasons behind which an object of the provider stands."""


def _below(node: NodeFacts, said: ConditionFacts) -> Cause | None:
    """Return the object that holds a substrate up: a refusal before a delay, the lowest first."""
    if said.reason not in _OF_THE_SUBSTRATE:
        return None
    found = [
        (kind not in REFUSALS, -depth, each, each.conditions[kind])
        for depth, each in enumerate(filter(None, (node.substrate, *node.composed)))
        if (kind := _complaint(each)) is not None
    ]
    if not found:
        return None
    _, _, each, complaint = min(found, key=lambda item: item[:2])
    return foreign(each, complaint, REMEDIES[Reason(said.reason)])


def _complaint(each: ObjectFacts) -> str | None:
    """Return the type of the condition in which an object says what is wrong; None: in none."""
    for kind in (*REFUSALS, READY):
        said = each.condition(kind, "False")
        if said is not None and (said.message or said.reason or each.warning):
            return kind
    return None


def keeps(record: ObjectFacts) -> ConditionFacts | None:
    """Return what keeps a record that goes: a failure before a stuck object before progress."""
    ready = record.condition(ConditionType.READY, "False")
    stuck = record.condition(ConditionType.SUBSTRATE_DELETED, "False")
    if stuck is None or stuck.reason != Reason.CHILD_STUCK:
        return ready
    fails = ready is not None and ready.reason not in _PROGRESS
    return ready if fails else stuck


_PROGRESS: Final = frozenset({Reason.DEREGISTERING, Reason.DEPROVISIONING})
