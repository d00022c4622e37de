"""Who has to act on a reason, with which command, and where it is written.

A total table over the closed set of reasons: what the broker can say, this can answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType
from typing import Final

from function.contract.conditions import Reason


@unique
class Actor(StrEnum):
    """Who has to act, in the words that are printed."""

    NOBODY = "nobody: it is in progress"
    AUTHOR = "you, or whoever wrote the manifest"
    PLATFORM = "the platform team: catalogue, blueprints, Projects"
    ADMIN = "the cluster's administrator: rights, policies, CRDs"
    OPERATOR = "whoever operates the reconciler"
    PROVIDER = "the provider, or its cloud"
    MACHINE = "the machine: its boot, or its network"


@unique
class Command(StrEnum):
    """The next command; `{…}` is filled in from the facts."""

    NONE = ""
    EDIT_XR = "kubectl -n {namespace} edit {xr}"
    RETRY = (
        "kubectl -n {namespace} patch {xr} --type=merge "
        """--patch '{{"spec":{{"retry":{retry}}}}}'"""
    )
    DELETE_RECORD = "kubectl -n {namespace} delete {culprit}"
    LIST = "kubectl get {resource} --all-namespaces"
    DESCRIBE = "kubectl -n {namespace} describe {culprit}"
    UNPAUSE = "kubectl -n {namespace} annotate {culprit} crossplane.io/paused-"
    CATALOGUE = "kubectl get projects,clouds,cloudcredentials,blueprintversions"
    NAMESPACE = "kubectl describe namespace {namespace}"
    LOGS = "kubectl -n plexsphere-system logs deployment/provisioning-broker --tail=100"
    POLICIES = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings"
    CAN_I = "kubectl -n {namespace} auth can-i --list"
    CROSSPLANE = "kubectl -n crossplane-system logs deployment/crossplane --tail=100"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about a reason.

    Attributes:
        actor: Who has to act.
        command: What to type next.
        runbook: A page and its entry, below `docs/runbooks`; empty where there is none.
    """

    actor: Actor
    command: Command
    runbook: str = ""


PENDING: Final = "provisioning.md, entry 1"
PROVISIONING: Final = "provisioning.md, entry 2"
FAILED: Final = "provisioning.md, entry 3"
RECONCILER: Final = "provisioning.md, entry 4"
NO_NODE: Final = "provisioning.md, entry 5"
LOST: Final = "provisioning.md, entry 6"
TOO_LONG: Final = "provisioning.md, entry 7"
EXPIRED: Final = "enrolment.md, entry 1"
CREDENTIAL: Final = "enrolment.md, entry 3"
MESH: Final = "deletion.md, entry 1"
REFUSED: Final = "deletion.md, entry 2"
STUCK: Final = "deletion.md, entry 3"

_WAIT: Final = Remedy(Actor.NOBODY, Command.NONE)
_EDIT: Final = Remedy(Actor.AUTHOR, Command.EDIT_XR, PENDING)
_CATALOGUE: Final = Remedy(Actor.PLATFORM, Command.CATALOGUE, PENDING)
_DESCRIBE: Final = Remedy(Actor.PLATFORM, Command.DESCRIBE)
_PROVIDER: Final = Remedy(Actor.PROVIDER, Command.DESCRIBE, PROVISIONING)
_MACHINE: Final = Remedy(Actor.MACHINE, Command.DESCRIBE, NO_NODE)
_RIGHTS: Final = Remedy(Actor.ADMIN, Command.DESCRIBE, REFUSED)
_MESH: Final = Remedy(Actor.OPERATOR, Command.LOGS, MESH)

REMEDIES: Final[Mapping[Reason, Remedy]] = MappingProxyType(
    {
        Reason.ADMITTED: _WAIT,
        Reason.BEING_DELETED: Remedy(Actor.PLATFORM, Command.DESCRIBE, STUCK),
        Reason.BLUEPRINT_NOT_FOUND: _CATALOGUE,
        Reason.CHILD_STUCK: Remedy(Actor.PROVIDER, Command.DESCRIBE, STUCK),
        Reason.CLOUD_NOT_FOUND: _CATALOGUE,
        Reason.COMPLETE: _WAIT,
        Reason.CREDENTIAL_NOT_ALLOWED: _CATALOGUE,
        Reason.CREDENTIAL_NOT_FOUND: _CATALOGUE,
        Reason.DELETED: _WAIT,
        Reason.DEREGISTERED_ELSEWHERE: Remedy(Actor.AUTHOR, Command.DELETE_RECORD, NO_NODE),
        Reason.DEREGISTERING: _WAIT,
        Reason.DEREGISTRATION_FAILED: _MESH,
        Reason.DEREGISTRATION_OVERDUE: _MESH,
        Reason.DEPROVISIONING: Remedy(Actor.NOBODY, Command.DESCRIBE, STUCK),
        Reason.EXTERNAL_SECRETS_MISSING: Remedy(Actor.PLATFORM, Command.CATALOGUE, CREDENTIAL),
        Reason.EXTERNAL_SECRET_TAKEN: Remedy(Actor.PLATFORM, Command.CATALOGUE, CREDENTIAL),
        Reason.FAILED: Remedy(Actor.AUTHOR, Command.RETRY, FAILED),
        Reason.FORCE_RELEASED: _WAIT,
        Reason.FORCE_RELEASE_INVALID: Remedy(Actor.OPERATOR, Command.DESCRIBE, MESH),
        Reason.FROZEN: Remedy(Actor.OPERATOR, Command.LOGS, RECONCILER),
        Reason.GENERATIONS_EXHAUSTED: Remedy(Actor.AUTHOR, Command.DESCRIBE, PENDING),
        Reason.HOLD_MISSING: Remedy(Actor.ADMIN, Command.POLICIES, PENDING),
        Reason.IMMUTABLE: _EDIT,
        Reason.INJECTED: _WAIT,
        Reason.INVALID_INPUT: _EDIT,
        Reason.INVALID_PARAMETERS: _EDIT,
        Reason.KIND_NOT_SERVED: Remedy(Actor.ADMIN, Command.DESCRIBE, PROVISIONING),
        Reason.LABELS_ALTERED: _EDIT,
        Reason.LABELS_DROPPED: _EDIT,
        Reason.LIVES_ELSEWHERE: Remedy(Actor.AUTHOR, Command.DESCRIBE, PENDING),
        Reason.MESH_SILENT: _MESH,
        Reason.NAMESPACE_NOT_READY: Remedy(Actor.PLATFORM, Command.NAMESPACE, PENDING),
        Reason.NEVER_REPORTED: _MACHINE,
        Reason.NOT_COMPOSED_HERE: Remedy(Actor.AUTHOR, Command.EDIT_XR, PENDING),
        Reason.NOT_EXPECTED: _WAIT,
        Reason.NOT_FAILED: _WAIT,
        Reason.NOT_INJECTED: Remedy(Actor.AUTHOR, Command.DELETE_RECORD, NO_NODE),
        Reason.NO_CONTROLLER: _DESCRIBE,
        Reason.ORPHANED: _DESCRIBE,
        Reason.OWNED: _WAIT,
        Reason.PREVIEW: _DESCRIBE,
        Reason.PROGRESSING: _WAIT,
        Reason.PROJECT_NOT_FOUND: _CATALOGUE,
        Reason.PROTECTED_ELSEWHERE: Remedy(Actor.AUTHOR, Command.EDIT_XR, PENDING),
        Reason.PROVIDER_CONFIG_TAKEN: Remedy(Actor.PLATFORM, Command.DESCRIBE, PENDING),
        Reason.PROVISIONING_TIMEOUT: Remedy(Actor.PROVIDER, Command.DESCRIBE, TOO_LONG),
        Reason.RECONCILE_FAILED: Remedy(Actor.OPERATOR, Command.LOGS, RECONCILER),
        Reason.RECREATING: _WAIT,
        Reason.RECREATIONS_EXHAUSTED: Remedy(Actor.MACHINE, Command.RETRY, NO_NODE),
        Reason.REGISTERED: _WAIT,
        Reason.REGISTRATION_TIMEOUT: _MACHINE,
        Reason.RESOURCE_NOT_FOUND: _DESCRIBE,
        Reason.RIGHTS_MISSING: _RIGHTS,
        Reason.STATUS_UNREADABLE: Remedy(Actor.OPERATOR, Command.LOGS, RECONCILER),
        Reason.SUBSTRATE_LOST: Remedy(Actor.AUTHOR, Command.RETRY, LOST),
        Reason.SUBSTRATE_PRESENT: _PROVIDER,
        Reason.TOKEN_EXPIRED: Remedy(Actor.MACHINE, Command.DESCRIBE, EXPIRED),
        Reason.TOKEN_REVOCATION_FAILED: _MESH,
        Reason.TOKEN_REVOKED: Remedy(Actor.AUTHOR, Command.DELETE_RECORD, EXPIRED),
        Reason.UNSUPPORTED_BLUEPRINT: Remedy(Actor.PLATFORM, Command.CATALOGUE, PENDING),
        Reason.UNSUPPORTED_KIND: _CATALOGUE,
        Reason.USER_DATA_TOO_LARGE: _EDIT,
        Reason.WAITING_FOR_CROSSPLANE: Remedy(Actor.PLATFORM, Command.DESCRIBE, PROVISIONING),
        Reason.WAITING_FOR_RECONCILER: Remedy(Actor.OPERATOR, Command.LOGS, RECONCILER),
        Reason.WAITING_FOR_REGISTRATION: Remedy(Actor.MACHINE, Command.DESCRIBE, NO_NODE),
        Reason.WAITING_FOR_SUBSTRATE: _PROVIDER,
        Reason.WAITING_FOR_TOKEN: _WAIT,
    }
)
"""Every reason; a test holds it to the closed set."""
