"""The plan of one reconcile of a living record.

Theory of operation: what a reconcile observed is a `ConvergeFacts` of closed sets. `decide`
asks the state machine (`domain.aggregate.phase`) for action and phase, and adds to them what a
lost substrate changes and what is worth a write. Three laws hold: nothing is applied for a
substrate that was lost under a live node until an operator raises `spec.retry`; the aggregate is
written only when its phase, its substrate's uid or its options are news; an Event follows an
entered phase, and a record's first status.

Source: seed 000 "What the reconcile loop does with the result"; docs/decisions/0018, 0028.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from function.contract.strategy import Phase
from reconciler.domain.aggregate.phase import Action, ObservedXR, next_phase


@unique
class ConvergeStep(StrEnum):
    """The one effect on the cluster or the mesh that a reconcile has."""

    START_OVER = "start-over"
    """Take the node out whose substrate was lost, and make a new one."""

    APPLY = "apply"
    """See to what the substrate needs: ProviderConfig, credential, token."""

    REMEMBER_CONFIG = "remember-config"
    """Remember which ProviderConfig is in use; nothing else is missing."""

    NOTHING = "nothing"
    """An operator must say what happens to a lost substrate, or a deletion was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergeFacts:
    """The facts that decide.

    Attributes:
        phase: The stored phase.
        machine_phase: The phase to decide from: another one where a deletion was requested.
        observed: What is to be seen of substrate and node.
        lost: The substrate was lost while its node is in the mesh.
        retried: `spec.retry` was raised, and nothing came of it yet.
        open: Tokens and credentials may be given out.
        learned: The substrate's uid is not the remembered one.
        rendered: The options that its document was rendered with are remembered.
        published: The record has a status with a phase.
    """

    phase: Phase
    machine_phase: Phase
    observed: ObservedXR
    lost: bool
    retried: bool
    open: bool
    learned: bool
    rendered: bool
    published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergePlan:
    """The plan of one reconcile.

    Attributes:
        step: The effect.
        phase: The phase afterwards.
        enters: The phase is another one than before: stored with its event in one transaction.
        remembers: Without a new phase, what was observed is stored.
        announces: An Event says the phase.
        reason: Why, in words.
    """

    step: ConvergeStep
    phase: Phase
    enters: bool
    remembers: bool
    announces: bool
    reason: str


def decide(facts: ConvergeFacts) -> ConvergePlan:
    """Return the plan. Total: every combination of facts has one."""
    decision = next_phase(facts.machine_phase, facts.observed)
    enters = decision.phase is not facts.phase
    step, reason = _step(facts, decision.action, decision.reason)
    return ConvergePlan(
        step=step,
        phase=decision.phase,
        enters=enters,
        # Also of one that was adopted with its substrate.
        remembers=not enters and (facts.learned or (facts.observed.exists and not facts.rendered)),
        announces=enters or not facts.published,
        reason=reason,
    )


def _step(facts: ConvergeFacts, action: Action, reason: str) -> tuple[ConvergeStep, str]:
    if facts.lost and facts.retried and facts.open:
        return ConvergeStep.START_OVER, "the substrate was lost and spec.retry was incremented"
    if action is Action.NOOP:
        return ConvergeStep.REMEMBER_CONFIG, reason
    if action is Action.APPLY and facts.lost:
        return ConvergeStep.NOTHING, "the substrate was lost; increment spec.retry to start over"
    return ConvergeStep.APPLY if action is Action.APPLY else ConvergeStep.NOTHING, reason
