"""The rows of the table of diagnosis, from what stops everything to what stops one node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from function.contract.conditions import ConditionType, Reason
from reconciler.domain.diagnosis.cause import Cause, foreign, said_by, stated
from reconciler.domain.diagnosis.facts import (
    ConditionFacts,
    DiagnosisFacts,
    Presence,
)
from reconciler.domain.diagnosis.node_rows import (
    AWAITED,
    READY,
    keeps,
    of_a_stalled_node,
    of_a_waiting_node,
)
from reconciler.domain.diagnosis.remedies import (
    PENDING,
    REMEDIES,
    Actor,
    Command,
    Remedy,
)

SYNCED: Final = "Synced"
"""Crossplane's own condition of composites and managed resources."""


def _not_allowed(facts: DiagnosisFacts) -> Cause | None:
    if facts.xr.presence is not Presence.FORBIDDEN or facts.nodes:
        return None
    text = f"you may not read {facts.xr.title} in namespace {facts.namespace}"
    return stated(facts.xr, "Forbidden", text, Remedy(Actor.ADMIN, Command.CAN_I))


def _not_found(facts: DiagnosisFacts) -> Cause | None:
    if facts.xr.presence is not Presence.ABSENT or facts.nodes:
        return None
    text = f"there is no {facts.xr.title} in namespace {facts.namespace}, and no record of one"
    if facts.records is Presence.FORBIDDEN:
        text = f"there is no {facts.xr.title} here; records you may not list, so it may be going"
    answer = stated(facts.xr, "NotFound", text, Remedy(Actor.AUTHOR, Command.LIST))
    return replace(answer, found=False)


def _paused(facts: DiagnosisFacts) -> Cause | None:
    for each in (facts.xr, *(node.record for node in facts.nodes)):
        if each.paused:
            text = "the annotation crossplane.io/paused stops every change"
            answer = stated(each, "Paused", text, Remedy(Actor.AUTHOR, Command.UNPAUSE))
            return replace(answer, since="")
    return None


def _going(facts: DiagnosisFacts) -> Cause | None:
    """Of a deletion: what keeps a node's record, or the XR where no record is left."""
    gone = facts.xr.deleting_since or facts.xr.presence is Presence.ABSENT
    for node in facts.nodes:
        said = keeps(node.record) if gone or node.record.deleting_since else None
        if said is not None:
            return said_by(node.record, said)
        if node.record.deleting_since:
            text = "its teardown has not begun: the reconciler is not running, or does not lead"
            return stated(node.record, AWAITED, text, REMEDIES[AWAITED])
    if not facts.xr.deleting_since:
        return None
    text = "it is being deleted, and its records are about to be"
    if not facts.nodes:
        keepers = ", ".join(facts.xr.finalizers) or "none"
        text = f"it is being deleted; no node is left, its finalizers are: {keepers}"
    return stated(facts.xr, "Deleting", text, Remedy(Actor.NOBODY, Command.DESCRIBE))


def _orphaned(facts: DiagnosisFacts) -> Cause | None:
    if facts.xr.presence is not Presence.ABSENT:
        return None
    record = facts.nodes[0].record
    said = record.condition(ConditionType.ORPHANED, "True")
    if said is not None:
        return said_by(record, said)
    text = f"{facts.xr.title} is gone and its record is not being deleted"
    return stated(record, Reason.ORPHANED, text, REMEDIES[Reason.ORPHANED])


def _not_synced(facts: DiagnosisFacts) -> Cause | None:
    said = facts.xr.condition(SYNCED, "False")
    if said is None:
        return None
    refused = facts.xr.condition(ConditionType.ADMITTED, "False")
    if refused is not None:
        return said_by(facts.xr, refused)
    return foreign(facts.xr, said, Remedy(Actor.PLATFORM, Command.DESCRIBE, PENDING))


def _not_reconciled(facts: DiagnosisFacts) -> Cause | None:
    if facts.xr.presence is not Presence.FOUND or SYNCED in facts.xr.conditions or facts.nodes:
        return None
    text = "Crossplane has not reconciled it: Crossplane is not running, or no Composition fits"
    return stated(facts.xr, "NotReconciled", text, Remedy(Actor.PLATFORM, Command.CROSSPLANE))


def _of_the_xr(facts: DiagnosisFacts) -> Cause | None:
    """What the function says where no record says more."""
    if facts.nodes:
        return None
    stalled = facts.xr.condition(ConditionType.STALLED, "True")
    said = stalled or facts.xr.condition(ConditionType.ADMITTED, "False", "Unknown")
    if said is not None:
        return said_by(facts.xr, said)
    if facts.records is Presence.FORBIDDEN or facts.xr.condition(READY, "True") is not None:
        return None
    text = "its Composition's pipeline composed no record; does it have a step of our function?"
    return stated(facts.xr, "NoRecord", text, Remedy(Actor.PLATFORM, Command.DESCRIBE, PENDING))


def _of_the_step(facts: DiagnosisFacts) -> Cause | None:
    """What the function alone says: a wrong name, a document that cannot be made."""
    stalled = facts.xr.condition(ConditionType.STALLED, "True")
    said = stalled or facts.xr.condition(ConditionType.ADMITTED, "False")
    return None if said is None else said_by(facts.xr, said)


def _ready(facts: DiagnosisFacts) -> Cause | None:
    said = facts.xr.condition(READY, "True")
    if said is None:
        return None
    text = "it is Ready" if facts.nodes else "it is Ready, and enrols no node"
    answer = stated(facts.xr, READY, text, Remedy(Actor.NOBODY, Command.NONE))
    return replace(answer, since=said.since, ready=True)


def _otherwise(facts: DiagnosisFacts) -> Cause:
    said = facts.xr.condition(READY, "False", "Unknown") or ConditionFacts(status="Unknown")
    return foreign(facts.xr, said, Remedy(Actor.PLATFORM, Command.DESCRIBE, PENDING))


ROWS: Final[tuple[Callable[[DiagnosisFacts], Cause | None], ...]] = (
    _not_allowed,
    _not_found,
    _paused,
    _going,
    _orphaned,
    _not_synced,
    _not_reconciled,
    _of_the_xr,
    of_a_stalled_node,
    _of_the_step,
    of_a_waiting_node,
    _ready,
    _otherwise,
)
