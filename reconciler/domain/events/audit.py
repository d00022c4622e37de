"""The audit entries of skipped deregistrations, replacements and retries.

The closed AuditAction set, whose strings equal the SQL CHECK, and what each entry says.
Source: design §2 "What holds it"; docs/decisions/0007.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from function.contract.record import Declaration
from function.contract.strategy import Phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.teardown.force_release import ForceRelease


@unique
class AuditAction(StrEnum):
    """The closed set; the strings are stored."""

    FORCE_RELEASE = "force-release"
    UNRELEASED_SUBSTRATE_GONE = "unreleased-substrate-gone"
    RECREATE = "recreate"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One entry, before it has an id and a time.

    Attributes:
        action: What happened.
        reason: The operator's own words, or what was found.
        actor: The field manager that asked for it; None when the broker cannot know.
    """

    action: AuditAction
    reason: str
    actor: str | None = None


def force_release(wish: ForceRelease) -> AuditEntry:
    """Return the entry of a deregistration that is skipped."""
    return AuditEntry(action=AuditAction.FORCE_RELEASE, reason=wish.reason, actor=wish.actor)


def recreation(resource: ProvisionedResource, why: str) -> AuditEntry:
    """Return the entry of a substrate that is released to be recreated."""
    reference = resource.substrate.reference
    reason = f"{reference.kind} {reference.name} is recreated: {why}"
    return AuditEntry(action=AuditAction.RECREATE, reason=reason)


def retry(resource: ProvisionedResource, declared: Declaration) -> AuditEntry | None:
    """Return the entry of a raised `spec.retry`, or None when it is not raised.

    In any phase: what was Failed starts over, a lost machine's node is taken out of the mesh,
    and replacements are counted from the start. Who raised it is in the API server's audit log.
    """
    before = resource.accepted.retry
    if declared.retry <= before:
        return None
    reason = f"spec.retry was raised from {before} to {declared.retry} in phase {resource.phase}"
    return AuditEntry(action=AuditAction.RETRY, reason=reason)


def on_phase(resource: ProvisionedResource, phase: Phase) -> AuditEntry | None:
    """Return the entry of a crossing that finds an unreleased substrate gone, or None.

    Somebody of the break-glass group deleted it, or somebody below the API (etcd, the
    policies taken out of force). Who did is in the API server's audit log and not here: the
    broker sees only that it is gone.

    Args:
        resource: The aggregate as it was before.
        phase: What it enters; only the two that find no substrate count.
    """
    substrate = resource.substrate
    if phase not in (Phase.PENDING, Phase.DELETED) or not substrate.seen or substrate.released:
        return None
    reference = substrate.reference
    return AuditEntry(
        action=AuditAction.UNRELEASED_SUBSTRATE_GONE,
        reason=f"{reference.kind} {reference.name} was deleted without being released",
    )
