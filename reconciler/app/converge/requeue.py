"""Reasons that no watch ends, and the delay until a record is judged again.

Which refusals something else than an edit can lift, and which records are incomplete until
the catalogue is whole. Source: seed 000 "What the reconcile loop does with the result";
design §5.
"""

from __future__ import annotations

from typing import Final

from function.contract.conditions import Reason
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.record.conditions import StatusFacts

AGAIN_S: Final = 5.0
"""How soon a refusal is judged again that something unwatched may lift (an XRD, a policy);
changes of what is watched come at once."""

TRANSIENT: Final = frozenset(
    {
        Reason.PROJECT_NOT_FOUND.value,
        Reason.NAMESPACE_NOT_READY.value,
        Reason.BLUEPRINT_NOT_FOUND.value,
        Reason.CREDENTIAL_NOT_FOUND.value,
        Reason.CLOUD_NOT_FOUND.value,
        Reason.HOLD_MISSING.value,
        Reason.UNSUPPORTED_BLUEPRINT.value,
        Reason.PROVIDER_CONFIG_TAKEN.value,
        Reason.CREDENTIAL_NOT_ALLOWED.value,
        Reason.RIGHTS_MISSING.value,
        Reason.UNSUPPORTED_KIND.value,
        Reason.EXTERNAL_SECRET_TAKEN.value,
        Reason.PROTECTED_ELSEWHERE.value,
    }
)
"""Refusals that something other than an edit of the declaration can lift."""


def liftable(refusal: Explanation | None) -> bool:
    """Tell whether something other than an edit can lift a refusal; None is none."""
    return refusal is not None and refusal.reason in TRANSIENT


def again_s(facts: StatusFacts) -> float | None:
    """Return in how many seconds a record is judged again, None being when it changes."""
    held_up = facts.waiting is not None or liftable(facts.refusal) or _unresolved(facts)
    return AGAIN_S if held_up else None


def _unresolved(facts: StatusFacts) -> bool:
    """Tell whether the status must name a ProviderConfig and cannot.

    A record that was restored without its status, while its BlueprintVersion, its
    CloudCredential or its Cloud is away; the function reads the name there.
    """
    if facts.resource is None or facts.provider_config is not None:
        return False
    accepted = facts.resource.accepted
    return accepted.blueprint is not None and accepted.cloud_credential is not None
