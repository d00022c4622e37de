"""Condition types and reasons, and how to read a condition from an object's status.

The closed vocabulary that users meet in `kubectl describe`. Messages never contain times or
counters (reference, crossplane §2.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any

from pydantic import BaseModel, ConfigDict


@unique
class ConditionType(StrEnum):
    """Every condition type we write, on the XR (function) or the record (reconciler)."""

    ADMITTED = "Admitted"
    BOOTSTRAP_INJECTED = "BootstrapInjected"
    NODE_REGISTERED = "NodeRegistered"
    PROVISIONING_FAILED = "ProvisioningFailed"
    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SUBSTRATE_DELETED = "SubstrateDeleted"
    ORPHANED = "Orphaned"
    ACCEPTED = "Accepted"
    CLOUD_TAGS_COMPLETE = "CloudTagsComplete"


@unique
class Reason(StrEnum):
    """Every reason we give; "why nothing happened" is one of these."""

    ADMITTED = "Admitted"
    BEING_DELETED = "BeingDeleted"
    BLUEPRINT_NOT_FOUND = "BlueprintNotFound"
    CHILD_STUCK = "ChildStuck"
    CLOUD_NOT_FOUND = "CloudNotFound"
    COMPLETE = "Complete"
    CREDENTIAL_NOT_ALLOWED = "CredentialNotAllowed"
    CREDENTIAL_NOT_FOUND = "CredentialNotFound"
    DELETED = "Deleted"
    DEREGISTERING = "Deregistering"
    DEREGISTERED_ELSEWHERE = "DeregisteredElsewhere"
    DEREGISTRATION_FAILED = "NodeDeregistrationFailed"
    DEREGISTRATION_OVERDUE = "DeregistrationOverdue"
    DEPROVISIONING = "Deprovisioning"
    EXTERNAL_SECRETS_MISSING = "ExternalSecretsMissing"
    EXTERNAL_SECRET_TAKEN = "ExternalSecretTaken"  # noqa: S105 - a reason's name
    FAILED = "Failed"
    FORCE_RELEASE_INVALID = "ForceReleaseInvalid"
    FORCE_RELEASED = "ForceReleased"
    FROZEN = "Frozen"
    GENERATIONS_EXHAUSTED = "GenerationsExhausted"
    HOLD_MISSING = "HoldPoliciesMissing"
    IMMUTABLE = "Immutable"
    INJECTED = "Injected"
    INVALID_INPUT = "InvalidInput"
    INVALID_PARAMETERS = "InvalidParameters"
    LABELS_ALTERED = "LabelsAltered"
    LABELS_DROPPED = "LabelsDropped"
    KIND_NOT_SERVED = "KindNotServed"
    LIVES_ELSEWHERE = "LivesElsewhere"
    MESH_SILENT = "MeshSilent"
    NAMESPACE_NOT_READY = "NamespaceNotReady"
    NO_CONTROLLER = "NoController"
    NEVER_REPORTED = "NeverReported"
    NOT_COMPOSED_HERE = "NotComposedHere"
    NOT_EXPECTED = "NotExpected"
    NOT_FAILED = "NotFailed"
    NOT_INJECTED = "NotInjected"
    ORPHANED = "Orphaned"
    OWNED = "Owned"
    PREVIEW = "Preview"
    PROGRESSING = "Progressing"
    PROJECT_NOT_FOUND = "ProjectNotFound"
    PROTECTED_ELSEWHERE = "ProtectedElsewhere"
    PROVISIONING_TIMEOUT = "ProvisioningTimeout"
    PROVIDER_CONFIG_TAKEN = "ProviderConfigTaken"
    RECONCILE_FAILED = "ReconcileFailed"
    RECREATING = "Recreating"
    RECREATIONS_EXHAUSTED = "RecreationsExhausted"
    REGISTERED = "Registered"
    REGISTRATION_TIMEOUT = "RegistrationTimeout"
    RESOURCE_NOT_FOUND = "ResourceNotFound"
    RIGHTS_MISSING = "RightsMissing"
    STATUS_UNREADABLE = "StatusUnreadable"
    SUBSTRATE_LOST = "SubstrateLost"
    SUBSTRATE_PRESENT = "SubstratePresent"
    TOKEN_EXPIRED = "TokenExpired"  # noqa: S105 - a reason's name
    TOKEN_REVOCATION_FAILED = "TokenRevocationFailed"  # noqa: S105 - a reason's name
    TOKEN_REVOKED = "TokenRevoked"  # noqa: S105 - a reason's name
    UNSUPPORTED_BLUEPRINT = "UnsupportedBlueprint"
    UNSUPPORTED_KIND = "UnsupportedKind"
    USER_DATA_TOO_LARGE = "UserDataTooLarge"
    WAITING_FOR_CROSSPLANE = "WaitingForCrossplane"
    WAITING_FOR_RECONCILER = "WaitingForReconciler"
    WAITING_FOR_REGISTRATION = "WaitingForRegistration"
    WAITING_FOR_SUBSTRATE = "WaitingForSubstrate"
    WAITING_FOR_TOKEN = "WaitingForToken"  # noqa: S105 - a reason's name


class Condition(BaseModel):
    """One condition of an object's status (Kubernetes API conventions, "Conditions").

    `lastTransitionTime` is the writer's concern: the reconciler keeps it while the status
    stays the same.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    type: str
    status: str
    reason: str = ""
    message: str = ""
    lastTransitionTime: str | None = None  # noqa: N815 - the wire's name
    observedGeneration: int | None = None  # noqa: N815 - the wire's name


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredCondition:
    """A condition to write: status, reason and message, without a time.

    Attributes:
        type: The condition's type.
        status: True, False, or None for Unknown.
        reason: A member of `Reason`, or a terminal reason a provider gave.
        message: One plain sentence, deterministic, not empty.
    """

    type: ConditionType
    status: bool | None
    reason: str
    message: str

    @property
    def status_text(self) -> str:
        """The status as Kubernetes spells it: True, False or Unknown."""
        return "Unknown" if self.status is None else str(self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCondition:
    """A condition of a raw status; absent fields are empty."""

    status: str
    reason: str
    message: str


def find(status: Mapping[str, Any], condition_type: str) -> ObservedCondition | None:
    """Return a condition of a raw status, or None when it is absent or unreadable."""
    for item in _items(status):
        if item.get("type") == condition_type:
            return _observed(item)
    return None


def by_type(status: Mapping[str, Any]) -> dict[str, ObservedCondition]:
    """Return the conditions of a raw status that `find` would find, by type."""
    found: dict[str, ObservedCondition] = {}
    for item in _items(status):
        kind = item.get("type")
        if isinstance(kind, str) and kind not in found:
            found[kind] = _observed(item)
    return found


def _items(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    raw = status.get("conditions")
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        for item in raw:
            # Nearly all are plain: asking the abstract class costs ten times as much.
            if item.__class__ is dict or isinstance(item, Mapping):
                yield item


def _observed(item: Mapping[str, Any]) -> ObservedCondition:
    return ObservedCondition(
        status=str(item.get("status", "")),
        reason=str(item.get("reason", "")),
        message=str(item.get("message", "")),
    )


def is_true(status: Mapping[str, Any], condition_type: str) -> bool:
    """Tell whether a condition is True; Unknown and absent are not (reference §2.6)."""
    condition = find(status, condition_type)
    return condition is not None and condition.status == "True"
