"""The broker's facade: a declaration becomes an aggregate, a deletion becomes intent.

Belongs here: `Service.provision` and `Service.deprovision` of the seeds, over ports. Not
here: driving an aggregate to Ready or to Deleted (`broker_tick`, `teardown`).
Source: seed 000 "Ubiquitous language", seed 001 "RecordDeletionIntent"; design §2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from function.contract import names
from function.contract.catalog import BlueprintVersionSpec
from function.contract.conditions import Reason
from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from reconciler.app.admission_gate import AdmissionGate
from reconciler.domain.broker import admission, ids, protection
from reconciler.domain.broker.errors import (
    AssignmentNotFoundError,
    BrokerError,
    RefusedError,
)
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.resource import ProtectedObject, ProvisionedResource, ResourceKey
from reconciler.domain.broker.verdicts import Why
from reconciler.ports.broker import (
    BrokerRepository,
)
from reconciler.ports.cluster import (
    Catalog,
    ManagementCluster,
)
from reconciler.ports.common import Clock, IDSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What became of a declaration.

    Attributes:
        resource: The aggregate it belongs to; None while none was accepted.
        refusal: Why the declaration as it stands is not accepted; None when it is.
        retried: The accepted declaration raised `spec.retry`.
    """

    resource: ProvisionedResource | None
    refusal: Why | None = None
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePorts:
    """The collaborators of the service."""

    repository: BrokerRepository
    catalog: Catalog
    cluster: ManagementCluster
    clock: Clock
    ids: IDSource


_STRANGER = Why(
    reason=Reason.INVALID_INPUT, message="metadata.name: another record speaks for this XR"
)
_UNOWNED = Admission(
    resource=None,
    refusal=Why(
        reason=Reason.NO_CONTROLLER,
        message="metadata.ownerReferences: a composite resource must control the record",
    ),
)


class Service:
    """The in-process application service of one management cluster."""

    def __init__(self, ports: ServicePorts, *, cluster_id: ids.ManagementClusterID) -> None:
        self._ports = ports
        self._cluster_id = cluster_id
        self._gate = AdmissionGate(ports.catalog, ports.cluster)

    async def provision(self, view: RecordView) -> Admission:
        """Accept a record's declaration, or say why not.

        A refused edit of an accepted declaration leaves the accepted one in force.

        Idempotency: an unchanged declaration is answered from its row, without a write
        and without looking at the catalogue again.
        """
        key = view.key
        existing = None if key is None else await self._ports.repository.find_live(key)
        if existing is not None and _unchanged(existing, view):
            return Admission(resource=existing)
        if existing is not None and existing.record.name != view.name:
            return Admission(resource=None, refusal=_STRANGER)
        if existing is not None and view.controller_uid is None:
            ours = existing.record.uid == view.uid
            return Admission(resource=existing) if ours else _UNOWNED
        try:
            resource = await self._accept(view, key, existing)
        except BrokerError as error:
            reason = error.shown_reason if isinstance(error, RefusedError) else error.reason
            if existing is not None:
                existing = await self._adopt(existing, view)
            return Admission(resource=existing, refusal=Why(reason=reason, message=str(error)))
        retried = existing is not None and view.spec.declaration.retry > existing.accepted.retry
        return Admission(resource=resource, retried=retried)

    async def settle_namespace(self, namespace: str) -> None:
        """Make a namespace's hold and count agree with what is stored.

        Idempotency: recomputed from the rows each time; equal ones write nothing.
        """
        unfinished = await self._ports.repository.list_in_namespace(namespace)
        await self._ports.cluster.hold_namespace(namespace, records=len(unfinished))

    async def _adopt(self, existing: ProvisionedResource, view: RecordView) -> ProvisionedResource:
        """Remember which record speaks for an aggregate, whatever it declares."""
        if existing.record == view.identity:
            return existing
        return await self._ports.repository.update(replace(existing, record=view.identity))

    async def deprovision(self, resource: ProvisionedResource) -> ProvisionedResource:
        """Record a deletion request (seed 001, "Service.Deprovision").

        Idempotency: an aggregate that is already tearing down is returned as stored.
        """
        requested = resource.request_deletion(self._ports.clock.now())
        return await self._ports.repository.record_deletion_intent(requested)

    async def _accept(
        self, view: RecordView, key: ResourceKey | None, existing: ProvisionedResource | None
    ) -> ProvisionedResource:
        if existing is not None:
            admission.immutable(existing.accepted, view.spec.declaration)
        blueprint = await self._gate.admit(view, fresh=existing is None)
        if key is None:  # pragma: no cover - the gate has refused it
            raise AssignmentNotFoundError
        if existing is not None:
            edited = self._edited(existing, view)
            return await self._ports.repository.update(edited)
        fresh = self._new(view, key, blueprint)
        await self._hold_namespace(view.namespace)
        try:
            return await self._ports.repository.create(fresh)
        finally:
            await self.settle_namespace(view.namespace)

    async def _hold_namespace(self, namespace: str) -> None:
        unfinished = await self._ports.repository.list_in_namespace(namespace)
        await self._ports.cluster.hold_namespace(namespace, records=len(unfinished) + 1)

    def _new(
        self, view: RecordView, key: ResourceKey, blueprint: BlueprintVersionSpec | None
    ) -> ProvisionedResource:
        identity = self._ports.ids.provisioned_resource_id()
        declaration = view.spec.declaration
        name = names.xr_name(identity)
        listed: Sequence[SubstrateReference] = view.spec.substrate
        if blueprint is not None:
            xr = blueprint.xr
            listed = (SubstrateReference(api_version=xr.api_version, kind=xr.kind, name=name),)
        now = self._ports.clock.now()
        return ProvisionedResource(
            id=identity,
            resource_id=ids.resource_id(
                key.project_id, xr=f"{key.group}/{key.kind}/{key.name}", resource=key.resource
            ),
            project_id=key.project_id,
            blueprint_version_id=ids.blueprint_version_id(
                "" if declaration.blueprint is None else declaration.blueprint.name
            ),
            cloud_credential_id=ids.cloud_credential_id(declaration.cloud_credential or ""),
            management_cluster_id=self._cluster_id,
            phase=Phase.PENDING,
            xr_name=name,
            key=key,
            record=view.identity,
            accepted=declaration,
            protected=protection.protect(listed, xr_name=name),
            created_at=now,
            updated_at=now,
        )

    def _edited(self, existing: ProvisionedResource, view: RecordView) -> ProvisionedResource:
        declared = view.spec.declaration
        retried = declared.retry > existing.accepted.retry
        return replace(
            existing,
            phase=Phase.PENDING if existing.may_retry(declared) else existing.phase,
            recreations=0 if retried else existing.recreations,
            accepted=declared,
            record=view.identity,
            protected=_followed(existing, view),
            updated_at=max(self._ports.clock.now(), existing.created_at),
        )


def _unchanged(existing: ProvisionedResource, view: RecordView) -> bool:
    same = existing.accepted == view.spec.declaration and existing.record == view.identity
    return same and _remembers(existing, view)


def _remembers(existing: ProvisionedResource, view: RecordView) -> bool:
    """Tell whether the aggregate knows everything that its record lists."""
    known = {item.reference for item in existing.protected}
    named = [item for item in view.spec.substrate if item.name]
    return not existing.enrolled or known.issuperset(named)


def _followed(existing: ProvisionedResource, view: RecordView) -> tuple[ProtectedObject, ...]:
    if not existing.enrolled:
        return existing.protected
    return protection.follow(existing.protected, view.spec.substrate)
