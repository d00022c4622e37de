"""The conditions of the XR, given in full on every run.

What each says in which stage. Conditions are sticky, so all are always there, with a reason
and a message, and never a time or a counter. What the reconciler wrote on the record is
mirrored where it explains why nothing happens. Source: reference, crossplane §2.6; design
§3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from function.compose import record_manifest, substrate_lookup
from function.compose.stage import Stage
from function.compose.status.progress import ProgressFacts, progress
from function.contract import conditions
from function.contract.conditions import ConditionType, DesiredCondition, ObservedCondition, Reason
from function.contract.errors import ContractError
from function.contract.redaction import redacted
from function.contract.strategy import MeshRole, Phase
from function.model.facts import Facts, Refusal, memoised
from function.model.objects import Raw, status
from function.render.fields import inject
from function.render.tags import encoding, tag_notes

MESSAGE_MAX: Final = 1024
"""Longest message in characters; the API's own limit is 32 KiB, a reader's is less."""

_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """The decision that the conditions report.

    Attributes:
        composed: The substrate that is composed, or None.
        live: The substrate in sight, or None.
        withheld: Why no bootstrap could be made, or None.
        unrendered: Why the substrate in sight stays as it is, or None.
    """

    stage: Stage
    composed: dict[str, Any] | None = None
    live: Raw | None = None
    withheld: ContractError | None = None
    unrendered: ContractError | None = None


def conditions_of(facts: Facts, judged: StageResult) -> tuple[DesiredCondition, ...]:
    """Return every condition, each of its own type, in one order."""
    found = (
        _admitted(facts, judged),
        _injected(facts, judged),
        _registered(facts, judged),
        _failed(facts, judged),
        _tagged(facts),
    )
    admitted, _, _, failed, _ = found
    moves = progress(
        ProgressFacts(
            admitted=admitted,
            failed=failed,
            stalled=said(facts, ConditionType.STALLED),
            reconciling=said(facts, ConditionType.RECONCILING),
            phase=facts.status.phase,
            withheld=judged.withheld,
            going=facts.drain or (facts.record is not None and facts.record.terminating),
            preview=judged.stage is Stage.PREVIEW,
        )
    )
    return (*found, *map(_verdict, moves))


def said(facts: Facts, condition_type: ConditionType) -> ObservedCondition | None:
    """Return a condition that the reconciler wrote on the record."""
    return _written(facts).get(condition_type)


@memoised
def _written(facts: Facts) -> Mapping[str, ObservedCondition]:
    return {} if facts.record is None else conditions.by_type(status(facts.record.raw))


def _admitted(facts: Facts, judged: StageResult) -> DesiredCondition:
    kind = ConditionType.ADMITTED
    if isinstance(facts.declared, Refusal):
        error = facts.declared.error
        if facts.declared.pending:
            return _unknown(kind, Reason.WAITING_FOR_CROSSPLANE, str(error))
        return _false(kind, error.reason, str(error))
    if judged.stage is Stage.PREVIEW:
        return _true(kind, Reason.PREVIEW, "the declaration is valid; this is a preview")
    if facts.record is not None and facts.record.unreadable is not None:
        unreadable = facts.record.unreadable
        return _unknown(kind, unreadable.reason, str(unreadable))
    if judged.unrendered is not None:
        return _false(kind, judged.unrendered.reason, str(judged.unrendered))
    return _reconcilers(facts)


def _reconcilers(facts: Facts) -> DesiredCondition:
    """What the reconciler says of the declaration."""
    kind = ConditionType.ADMITTED
    mirrored = said(facts, kind)
    if mirrored is not None:
        return _mirror(kind, mirrored)
    if facts.status.accepted is not None:
        return _true(kind, Reason.ADMITTED, "the declaration was accepted")
    stalled = said(facts, ConditionType.STALLED)
    if stalled is not None and stalled.status == "True":
        return _mirror(kind, replace(stalled, status="Unknown"))
    return _unknown(
        kind, Reason.WAITING_FOR_RECONCILER, "waiting for the reconciler to process the record"
    )


def _injected(facts: Facts, judged: StageResult) -> DesiredCondition:
    kind = ConditionType.BOOTSTRAP_INJECTED
    if substrate_lookup.role(facts) is MeshRole.STANDALONE:
        message = "the mesh role is standalone; no bootstrap is injected"
        return _false(kind, Reason.NOT_EXPECTED, message)
    if judged.stage is Stage.PREVIEW:
        return _true(kind, Reason.PREVIEW, "a placeholder is rendered instead of the token")
    if judged.withheld is not None:
        return _false(kind, judged.withheld.reason, str(judged.withheld))
    if judged.composed is not None:
        return _carried(facts, judged.composed)
    return _not_injected(facts, judged.stage)


def _carried(facts: Facts, composed: Raw) -> DesiredCondition:
    kind = ConditionType.BOOTSTRAP_INJECTED
    if substrate_lookup.uninjected(facts):
        return _false(kind, Reason.NOT_INJECTED, _OLDER)
    if facts.target is not None or inject.observed(composed):
        return _true(kind, Reason.INJECTED, "the bootstrap is injected into the substrate")
    return _false(kind, Reason.NOT_INJECTED, "no bootstrap is injected into the substrate")


_OLDER: Final = "the substrate is older than its record and has no bootstrap; recreate it to enrol"


def _not_injected(facts: Facts, stage: Stage) -> DesiredCondition:
    kind = ConditionType.BOOTSTRAP_INJECTED
    stalled = said(facts, ConditionType.STALLED)
    if stalled is not None and stalled.status == "True":
        return _mirror(kind, replace(stalled, status="False"))
    reason, message = _UNINJECTED.get(
        stage, (Reason.NOT_INJECTED, "the declaration is not admitted")
    )
    return _false(kind, reason, message)


_UNINJECTED: Final = {
    Stage.RECORD_ONLY: (
        Reason.WAITING_FOR_RECONCILER,
        "waiting for the reconciler to process the record",
    ),
    Stage.ABSENT: (Reason.DEPROVISIONING, "the substrate is being removed"),
    Stage.TERMINATING: (Reason.DEPROVISIONING, "the record is being torn down"),
    Stage.DRAINING: (Reason.DEPROVISIONING, "the resource is being drained"),
    Stage.DRAINED: (Reason.DEPROVISIONING, "the earlier record is still being deleted"),
    Stage.SEEK: (Reason.WAITING_FOR_CROSSPLANE, "an earlier substrate is being looked up"),
    Stage.VANISHING: (Reason.WAITING_FOR_SUBSTRATE, "the earlier substrate is still being deleted"),
    Stage.WAIT_TOKEN: (
        Reason.WAITING_FOR_TOKEN,
        "waiting for the reconciler to issue a bootstrap token",
    ),
}


def _registered(facts: Facts, judged: StageResult) -> DesiredCondition:
    kind = ConditionType.NODE_REGISTERED
    if substrate_lookup.role(facts) is MeshRole.STANDALONE:
        return _false(kind, Reason.NOT_EXPECTED, "the mesh role is standalone; no node is expected")
    if judged.stage is Stage.PREVIEW:
        return _false(kind, Reason.PREVIEW, "no node registers in a preview")
    mirrored = said(facts, kind)
    if mirrored is not None:
        return _mirror(kind, mirrored)
    return _node(facts, judged)


def _node(facts: Facts, judged: StageResult) -> DesiredCondition:
    kind = ConditionType.NODE_REGISTERED
    if facts.status.node is not None:
        return _true(kind, Reason.REGISTERED, "the node registered")
    if judged.composed is not None and substrate_lookup.uninjected(facts):
        return _false(kind, Reason.NOT_INJECTED, _OLDER)
    if judged.composed is not None:
        message = "the node has not registered yet"
        return _false(kind, Reason.WAITING_FOR_REGISTRATION, message)
    if judged.stage in {Stage.ABSENT, Stage.TERMINATING, Stage.DRAINED}:
        return _false(kind, Reason.DEPROVISIONING, "the resource is being torn down")
    return _false(kind, Reason.WAITING_FOR_SUBSTRATE, "the substrate does not exist yet")


def _failed(facts: Facts, judged: StageResult) -> DesiredCondition:
    kind = ConditionType.PROVISIONING_FAILED
    failure = record_manifest.failure(facts, judged.live)
    if failure is not None:
        return _true(kind, failure.reason, failure.message)
    if facts.status.phase is Phase.FAILED:
        stalled = said(facts, ConditionType.STALLED)
        if stalled is not None and stalled.message:
            failed = replace(stalled, status="True", reason=Reason.FAILED)
            return _mirror(kind, failed)
        return _true(
            kind, Reason.FAILED, "provisioning failed; fix the cause, then increment spec.retry"
        )
    stalled = said(facts, ConditionType.STALLED)
    if stalled is not None and _is_late(stalled):
        return _mirror(kind, replace(stalled, status="False"))
    return _false(kind, Reason.NOT_FAILED, "no terminal failure is reported")


def _is_late(stalled: ObservedCondition) -> bool:
    """The machine may still come: it has not failed, and what it lacks has a name."""
    return stalled.status == "True" and stalled.reason == Reason.PROVISIONING_TIMEOUT


def _tagged(facts: Facts) -> DesiredCondition:
    """Whether every label is a cloud tag as it was declared; without a declaration, none is."""
    kind = ConditionType.CLOUD_TAGS_COMPLETE
    accepted = facts.status.accepted
    declared = accepted or (None if isinstance(facts.declared, Refusal) else facts.declared)
    if declared is None or not declared.labels:
        return _true(kind, Reason.COMPLETE, "no label is declared")
    if facts.target is not None and facts.target.tags is None:
        message = "paths.tags: is not set, so no label becomes a cloud tag"
        return _false(kind, Reason.LABELS_DROPPED, message)
    notes = encoding.encode(declared.provider, declared.labels).notes
    told = tag_notes.report(notes)
    if told is None:
        return _true(kind, Reason.COMPLETE, "every label is a cloud tag, unchanged")
    dropped = any(note.kind.dropped for note in notes)
    return _false(kind, Reason.LABELS_DROPPED if dropped else Reason.LABELS_ALTERED, told)


_STATUS: Final = {"True": True, "False": False}


def _mirror(kind: ConditionType, condition: ObservedCondition) -> DesiredCondition:
    return _verdict(
        DesiredCondition(
            type=kind,
            status=_STATUS.get(condition.status),
            reason=condition.reason,
            message=condition.message,
        )
    )


def _true(kind: ConditionType, reason: str, message: str) -> DesiredCondition:
    return _verdict(DesiredCondition(type=kind, status=True, reason=reason, message=message))


def _false(kind: ConditionType, reason: str, message: str) -> DesiredCondition:
    return _verdict(DesiredCondition(type=kind, status=False, reason=reason, message=message))


def _unknown(kind: ConditionType, reason: str, message: str) -> DesiredCondition:
    return _verdict(DesiredCondition(type=kind, status=None, reason=reason, message=message))


def _verdict(verdict: DesiredCondition) -> DesiredCondition:
    """Return a verdict the API server takes, whatever a provider wrote."""
    if isinstance(verdict.reason, Reason):
        legal: str = verdict.reason
    else:
        reason = redacted(verdict.reason)
        legal = reason if _REASON.fullmatch(reason) else str(verdict.type)
    text = redacted(verdict.message)[:MESSAGE_MAX].strip() or legal
    if (legal, text) == (verdict.reason, verdict.message):
        return verdict
    return replace(verdict, reason=legal, message=text)
