"""The ProvisionedResource aggregate: one declared piece of substrate.

The value, its one validating constructor for new and stored rows, and its transitions.
Source: seed 000 "The ProvisionedResource aggregate"; design §2, §5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from function.contract.record import Declaration, Enrolment, ObservedSubstrate
from function.contract.strategy import MeshRole, Phase
from reconciler.domain.aggregate import ids, invariants, phase
from reconciler.domain.aggregate.children import Child
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.domain.aggregate.protected_object import ProtectedObject

_PROOF_OF_SUBSTRATE: Final = frozenset(
    {Phase.PROVISIONING, Phase.ENROLLING, Phase.READY, Phase.FAILED}
)
"""Converging phases that nothing but an observed substrate leads to."""


_PROVISIONED: Final = frozenset({Phase.READY, Phase.FAILED})
"""What ends the time that a substrate may take. Enrolling does not: a substrate that is ready for
a moment and then again is not would never be late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKey:
    """The key of an aggregate whose deletion was not requested (design §2)."""

    project_id: ids.ProjectID
    namespace: str
    group: str
    kind: str
    name: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIdentity:
    """The record object that declares the aggregate."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedResource:
    """One aggregate, valid by construction.

    Attributes:
        id: UUIDv7, minted at acceptance.
        phase: One of eight; teardown is derived from `deletion_requested_at` and phase.
        xr_name: `pr-<id>`, never operator-supplied.
        bootstrap_token_id: The current generation's token; None before issuance.
        generation: Bootstrap generation, 0 before the first token.
        accepted: The declaration as accepted; the function composes from it.
        protected: The substrate, whose absence means "gone", and then its siblings.
        version: Counts writes; a write names the version it read.
        deletion_requested_at: None until a deletion request was accepted.
        force_released_at: When the node's deregistration was skipped; None when it was not.
        provisioning_since: Since when a substrate has been due, by the store's clock; None while
            none is, and once it was Ready.
        enrolling_since: When the substrate was ready and its node still to come, or None.
        retries: How often a raised `spec.retry` was accepted, which itself may fall; never falls.
        recreations: How often its substrate was released to be recreated; `spec.retry` resets it.
        recreating_since: When the one that is under way began; None while none is.
        children: What its substrates were ever made of, siblings not.
        rendered_with: The knobs of the document under its substrate; None before there is one.
    """

    id: ids.ProvisionedResourceID
    resource_id: ids.ResourceID
    project_id: ids.ProjectID
    blueprint_version_id: ids.BlueprintVersionID
    cloud_credential_id: ids.CloudCredentialID
    management_cluster_id: ids.ManagementClusterID
    phase: Phase
    xr_name: str
    key: ResourceKey
    record: RecordIdentity
    accepted: Declaration
    protected: tuple[ProtectedObject, ...]
    created_at: datetime
    updated_at: datetime
    bootstrap_token_id: ids.BootstrapTokenID | None = None
    generation: int = 0
    version: int = 0
    deletion_requested_at: datetime | None = None
    force_released_at: datetime | None = None
    provisioning_since: datetime | None = None
    enrolling_since: datetime | None = None
    retries: int = 0
    recreations: int = 0
    recreating_since: datetime | None = None
    children: tuple[Child, ...] = ()
    rendered_with: Enrolment | None = None

    def __post_init__(self) -> None:
        """Check the invariants for new and stored rows alike.

        Raises:
            InvalidInputError: A rule of `invariants` is broken; it names field and rule.
        """
        for field, rule in invariants.faults(self):
            raise _invalid(field=field, rule=rule)

    @property
    def substrate(self) -> ProtectedObject:
        """The object that its node runs on."""
        return self.protected[0]

    @property
    def siblings(self) -> tuple[ProtectedObject, ...]:
        """What else its node needs until it is out."""
        return self.protected[1:]

    @property
    def node_expected(self) -> bool:
        """Tell whether a node must register before the resource is Ready."""
        return self.accepted.mesh_role is MeshRole.NODE

    @property
    def enrolled(self) -> bool:
        """Tell whether its substrate is a resource of somebody else's Composition."""
        return self.accepted.blueprint is None

    @property
    def exhausted(self) -> bool:
        """Tell whether the last bootstrap generation there may be was claimed."""
        return self.generation >= invariants.GENERATION_MAX

    def uninjected(self, seen: ObservedSubstrate, *, exists: bool) -> bool:
        """Tell whether its substrate was there before its record, and so has no bootstrap.

        Before the first generation nothing of ours can have been injected, unless the
        substrate says so itself (an aggregate recreated for a node that is there).
        """
        fresh = self.generation == 0 and seen.bootstrap_generation is None
        return self.enrolled and self.node_expected and exists and fresh

    @property
    def machine_phase(self) -> Phase:
        """The phase to decide from: a requested deletion is never anything but teardown."""
        going = self.deletion_requested_at is not None and not phase.is_teardown(self.phase)
        return Phase.DEREGISTERING if going else self.phase

    def request_deletion(self, at: datetime) -> ProvisionedResource:
        """Return the aggregate with its deletion requested.

        Idempotency: one that is already tearing down is returned as it is.
        """
        if self.deletion_requested_at is not None:
            return self
        return replace(
            self,
            phase=Phase.DEREGISTERING,
            deletion_requested_at=at,
            updated_at=max(at, self.updated_at),
        )

    def enter(self, entered: Phase, at: datetime) -> ProvisionedResource:
        """Return the aggregate in a phase, with what that says of its substrate.

        One that went without a release starts over as one that was never there, so that
        its going is told once.
        """
        substrate = self.substrate
        if entered is Phase.PENDING:
            substrate = ProtectedObject(reference=substrate.reference, uid=substrate.uid)
        elif entered in _PROOF_OF_SUBSTRATE:
            substrate = replace(substrate, seen=True)
        since = at if entered is Phase.ENROLLING else self.enrolling_since
        made = replace(self, phase=entered, protected=(substrate, *self.siblings), updated_at=at)
        if entered is Phase.PROVISIONING:
            made = made.due(at)
        elif entered in _PROVISIONED:
            made = replace(made, provisioning_since=None)
        if entered is Phase.PENDING:
            return replace(made, enrolling_since=None, rendered_with=None)
        return replace(made, enrolling_since=since)

    def due(self, at: datetime) -> ProvisionedResource:
        """Return the aggregate with its substrate due; the first time counts."""
        return replace(self, provisioning_since=self.provisioning_since or at)

    def may_retry(self, declared: Declaration) -> bool:
        """Tell whether a declaration takes a Failed aggregate back to Pending."""
        return self.phase is Phase.FAILED and declared.retry > self.accepted.retry


def _invalid(*, field: str, rule: str) -> InvalidInputError:
    return InvalidInputError(f"cannot build provisioned resource: {field} {rule}")
