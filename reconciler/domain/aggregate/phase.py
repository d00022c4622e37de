"""The status state machine of a ProvisionedResource.

Theory of operation. Each reconcile gives the current phase and six facts (`ObservedXR`) and
gets an action and the next phase. There are two arms and two sinks:

    converge  Pending, Provisioning, Enrolling, Ready, and any unknown phase (as Pending)
              failed                     -> Noop,            Failed
              substrate absent           -> Apply,           Pending
              substrate not ready        -> Apply,           Provisioning
              ready, node missing (**)   -> Apply,           Enrolling
              ready, node registered     -> Noop,            Ready
    teardown  Deregistering, Deprovisioning
              node registered (*)        -> DeregisterNode,  Deregistering
              substrate present          -> DeleteSubstrate, Deprovisioning
              neither                    -> Noop,            Deleted
    sinks     Failed, Deleted            -> Noop, the same phase

    (*) unless its deregistration was skipped by force-release (docs/decisions/0007)
    (**) not registered, and the substrate did get a bootstrap (docs/decisions/0009)

Rules in order: the sinks and the teardown arm are chosen by phase alone, because they
cannot be re-derived from facts; terminal failure is checked before existence and
readiness; a registered node is checked before the substrate, which is what puts the node
before the substrate. Reads no clock, no memory, no I/O. May be imported by anybody in the
reconciler. Source: seed 000 "Status state machine", seed 001 "Deletion state machine".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

from function.contract.strategy import Phase

TEARDOWN: Final = frozenset({Phase.DEREGISTERING, Phase.DEPROVISIONING, Phase.DELETED})
"""The phases that never lead back to the converge arm."""


@unique
class Action(StrEnum):
    """The one thing a reconcile does (seed 000, "Ubiquitous language")."""

    NOOP = "Noop"
    APPLY = "Apply"
    DEREGISTER_NODE = "DeregisterNode"
    DELETE_SUBSTRATE = "DeleteSubstrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedXR:
    """The observed facts of one reconcile.

    Attributes:
        exists: The substrate object exists.
        ready: Crossplane reports it ready.
        failed: It carries a terminal failure (`ProvisioningFailed` True).
        node_registered: While converging: the expected node has registered, or none is
            expected. In teardown: a node is still live in the mesh.
        force_released: In teardown: an operator gave the node up, so that it holds nothing
            any more. While converging it means nothing.
        uninjected: The substrate was there before its record and has no bootstrap, so that
            no node can come of it. In teardown it means nothing.
    """

    exists: bool
    ready: bool
    failed: bool
    node_registered: bool
    force_released: bool = False
    uninjected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The action, the next phase, and the reason."""

    action: Action
    phase: Phase
    reason: str


def is_teardown(phase: Phase) -> bool:
    """Tell whether a phase belongs to the teardown machine."""
    return phase in TEARDOWN


def next_phase(current: str, observed: ObservedXR) -> Decision:
    """Decide one reconcile.

    Args:
        current: The stored phase; a string outside the closed set counts as Pending.
        observed: The facts of this reconcile.

    Returns:
        Total: every pair maps to a result. Deciding twice on one observation gives the
        phase that deciding once gave.
    """
    if current == Phase.DELETED:
        return _decision(Action.NOOP, Phase.DELETED, "node and substrate are deleted")
    if current in TEARDOWN:
        return _tear_down(observed)
    if current == Phase.FAILED:
        return _decision(Action.NOOP, Phase.FAILED, "failed; increment spec.retry to start over")
    return _converge(observed)


def _converge(observed: ObservedXR) -> Decision:
    if observed.failed:
        return _decision(Action.NOOP, Phase.FAILED, "the substrate reports a terminal failure")
    if not observed.exists:
        return _decision(Action.APPLY, Phase.PENDING, "the substrate does not exist yet")
    if not observed.ready:
        return _decision(Action.APPLY, Phase.PROVISIONING, "the substrate is not ready yet")
    if observed.uninjected:
        return _decision(Action.NOOP, Phase.READY, "the substrate is ready and has no bootstrap")
    if not observed.node_registered:
        return _decision(Action.APPLY, Phase.ENROLLING, "the node has not registered yet")
    return _decision(Action.NOOP, Phase.READY, "the substrate is ready and the node registered")


def _tear_down(observed: ObservedXR) -> Decision:
    if observed.node_registered and not observed.force_released:
        reason = "the node is still in the mesh"
        return _decision(Action.DEREGISTER_NODE, Phase.DEREGISTERING, reason)
    node = "given up" if observed.node_registered else "out"
    if observed.exists:
        reason = f"the node is {node} and the substrate remains"
        return _decision(Action.DELETE_SUBSTRATE, Phase.DEPROVISIONING, reason)
    return _decision(Action.NOOP, Phase.DELETED, f"the node is {node} and the substrate is gone")


def _decision(action: Action, phase: Phase, reason: str) -> Decision:
    return Decision(action=action, phase=phase, reason=reason)
