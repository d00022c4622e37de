"""The conditions of a record, as total functions over the facts of a reconcile.

Source: kinds.md; Kubernetes API conventions, "Conditions"; kstatus.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from function.contract.conditions import ConditionType as Type
from function.contract.conditions import DesiredCondition, Reason
from function.contract.record import Enrolment, Node
from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate import phase as phases
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.record import progress

OF_THE_NODE: Final = frozenset(
    {
        Reason.DEREGISTERED_ELSEWHERE,
        Reason.GENERATIONS_EXHAUSTED,
        Reason.NEVER_REPORTED,
        Reason.RECREATING,
        Reason.RECREATIONS_EXHAUSTED,
        Reason.REGISTRATION_TIMEOUT,
    }
)
"""Reasons that `NodeRegistered` tells too, which the function mirrors to the XR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """Everything a status is rendered from.

    Attributes:
        resource: The aggregate; None while nothing was admitted.
        refusal: Why the declaration as it stands is not accepted; None when it is.
        refusal_is_final: Whether only an edit can help.
        waiting: Why nothing happens at the moment; None when the phase explains it.
        stall: What only an operator can fix; None when nothing is.
        failure: What is said of a Failed one (`progress.failed`).
        orphaned: The record lost its controlling XR.
        bootstrap: State of the current token.
        secret_name: The Secret of the current generation, once it exists.
        node: The live node; where the mesh does not tell, the one that was shown last.
        mesh_silent: The mesh does not tell whether there is a node.
        force_release: The outcome of the wish to skip its deregistration; None without one.
        uninjected: The substrate was there before its record, so that no node comes of it.
        substrate_absent: The function must drop the substrate.
        provider_config: Name of the ProviderConfig in use.
        enrolment: The options the document needs.
    """

    resource: ProvisionedResource | None
    refusal: Explanation | None = None
    refusal_is_final: bool = False
    waiting: Explanation | None = None
    stall: Explanation | None = None
    failure: str = "The substrate failed terminally. Fix the cause, then increment spec.retry."
    orphaned: bool = False
    bootstrap: BootstrapState = BootstrapState.NONE
    secret_name: str | None = None
    node: Node | None = None
    mesh_silent: bool = False
    force_release: Explanation | None = None
    uninjected: bool = False
    substrate_absent: bool = False
    provider_config: str | None = None
    enrolment: Enrolment | None = None


def conditions_of(facts: StatusFacts) -> tuple[DesiredCondition, ...]:
    """Return every condition of a record, in a fixed order. Total over the facts."""
    return (
        _ready(facts),
        _reconciling(facts),
        _stalled(facts),
        _admitted(facts),
        _node_registered(facts),
        _substrate_deleted(facts),
        _orphaned(facts),
    )


def _ready(facts: StatusFacts) -> DesiredCondition:
    resource = facts.resource
    if resource is not None and resource.phase is Phase.READY and facts.uninjected:
        message = "The substrate is ready. It has no bootstrap, so no node is expected."
        return _yes(Type.READY, Reason.NOT_INJECTED, message)
    if resource is not None and resource.phase is Phase.READY and facts.stall is None:
        return _yes(Type.READY, Reason.REGISTERED, "The substrate is ready and enrolled.")
    why = facts.stall or facts.refusal or facts.waiting or _stall(facts) or _progress(resource)
    return _no(Type.READY, why.reason, why.message)


def _reconciling(facts: StatusFacts) -> DesiredCondition:
    if _stall(facts) is not None:
        message = "Manual action is required; see the Stalled condition."
        return _no(Type.RECONCILING, Reason.FAILED, message)
    resource = facts.resource
    if resource is not None and resource.phase in (Phase.READY, Phase.DELETED):
        return _no(Type.RECONCILING, resource.phase.value, "The reconcile is complete.")
    why = facts.refusal or facts.waiting or _progress(resource)
    return _yes(Type.RECONCILING, why.reason, why.message)


def _stalled(facts: StatusFacts) -> DesiredCondition:
    why = _stall(facts)
    if why is None:
        return _no(Type.STALLED, Reason.PROGRESSING, "Nothing is stalled.")
    return _yes(Type.STALLED, why.reason, why.message)


def _stall(facts: StatusFacts) -> Explanation | None:
    if facts.stall is not None:
        return facts.stall
    if facts.refusal is not None and facts.refusal_is_final:
        return facts.refusal
    if facts.resource is not None and facts.resource.phase is Phase.FAILED:
        return Explanation(reason=Reason.FAILED, message=facts.failure)
    return None


def _admitted(facts: StatusFacts) -> DesiredCondition:
    if facts.refusal is not None:
        return _no(Type.ADMITTED, facts.refusal.reason, facts.refusal.message)
    if facts.resource is None:
        return _unknown(
            Type.ADMITTED, Reason.PROGRESSING, "The declaration has not been checked yet."
        )
    return _yes(Type.ADMITTED, Reason.ADMITTED, "The declaration is accepted.")


def _node_registered(facts: StatusFacts) -> DesiredCondition:
    node, why, told = _node(facts), facts.force_release, facts.stall or facts.waiting
    if told is not None and told.reason in OF_THE_NODE:
        return replace(node, reason=told.reason, message=told.message)
    # An invalid force-release annotation is reported whatever is known of the node.
    if why is None:
        return node
    return replace(node, reason=why.reason, message=f"{node.message} {why.message}")


def _node(facts: StatusFacts) -> DesiredCondition:
    kind = Type.NODE_REGISTERED
    resource = facts.resource
    if facts.mesh_silent:
        message = "Cannot read from the mesh whether the node is registered; retrying."
        return _unknown(kind, Reason.MESH_SILENT, message)
    if facts.node is not None:
        return _yes(kind, Reason.REGISTERED, f"Node {facts.node.id} is in the mesh.")
    if resource is not None and not resource.node_expected:
        return _no(kind, Reason.NOT_EXPECTED, "The mesh role is standalone; no node is expected.")
    if resource is not None and phases.is_teardown(resource.phase):
        return _no(kind, Reason.DELETED, "The node is not in the mesh.")
    if facts.uninjected:
        message = (
            "The substrate is older than its record and has no bootstrap; recreate it to enrol."
        )
        return _no(kind, Reason.NOT_INJECTED, message)
    return _no(kind, Reason.WAITING_FOR_REGISTRATION, "No node has registered yet.")


def _substrate_deleted(facts: StatusFacts) -> DesiredCondition:
    resource = facts.resource
    if resource is not None and resource.phase is Phase.DELETED:
        return _yes(Type.SUBSTRATE_DELETED, Reason.DELETED, "The substrate is gone.")
    why = facts.waiting
    unseen = why is not None and why.reason in (Reason.KIND_NOT_SERVED, Reason.RIGHTS_MISSING)
    if why is not None and (facts.substrate_absent or unseen):
        return _no(Type.SUBSTRATE_DELETED, why.reason, why.message)
    message = "The substrate is held." if resource is not None else "No substrate exists."
    return _no(Type.SUBSTRATE_DELETED, Reason.SUBSTRATE_PRESENT, message)


def _orphaned(facts: StatusFacts) -> DesiredCondition:
    if facts.orphaned:
        message = "The XR of this record is gone. Apply the XR again, or delete this record."
        return _yes(Type.ORPHANED, Reason.ORPHANED, message)
    return _no(Type.ORPHANED, Reason.OWNED, "A composite resource controls this record.")


def _progress(resource: ProvisionedResource | None) -> Explanation:
    reason, message = progress.explain(None if resource is None else resource.phase)
    return Explanation(reason=reason, message=message)


def _yes(kind: Type, reason: str, message: str) -> DesiredCondition:
    return DesiredCondition(type=kind, status=True, reason=reason, message=message)


def _no(kind: Type, reason: str, message: str) -> DesiredCondition:
    return DesiredCondition(type=kind, status=False, reason=reason, message=message)


def _unknown(kind: Type, reason: str, message: str) -> DesiredCondition:
    return DesiredCondition(type=kind, status=None, reason=reason, message=message)
