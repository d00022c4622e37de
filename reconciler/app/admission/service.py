"""Turns a declaration into an aggregate, and a deletion into a stored request.

`Service.provision` and `Service.deprovision` of the seeds, over ports. Source: seed 000
"Ubiquitous language", seed 001 "RecordDeletionIntent"; design §2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from function.contract import names
from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.conditions import Reason
from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from reconciler.app.admission.admission_gate import AdmissionGate
from reconciler.app.protection.namespace_hold import NamespaceHold
from reconciler.domain.admission import admission
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import (
    AssignmentNotFoundError,
    BrokerError,
    LivesElsewhereError,
    ProvisionedResourceNotFoundError,
    RefusedError,
    StaleAggregateError,
)
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, ResourceKey
from reconciler.domain.events import audit
from reconciler.domain.protection import protection
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.replacement import transitions
from reconciler.ports.clock import Clock, IDSource
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.store.aggregates import BrokerRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The outcome of a declaration.

    Attributes:
        resource: The aggregate it belongs to; None while none was accepted.
        refusal: Why the declaration as it stands is not accepted; None when it is.
        retried: The accepted declaration raised `spec.retry`.
    """

    resource: ProvisionedResource | None
    refusal: Explanation | None = None
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePorts:
    """The collaborators of the service."""

    repository: BrokerRepository
    catalog: Catalog
    cluster: ManagementCluster
    clock: Clock
    ids: IDSource


_STRANGER = Explanation(
    reason=Reason.INVALID_INPUT,
    message="metadata.name: another record already declares this resource of the XR",
)
_UNOWNED = Admission(
    resource=None,
    refusal=Explanation(
        reason=Reason.NO_CONTROLLER,
        message="metadata.ownerReferences: must name a composite resource as the controller",
    ),
)


class Service:
    """The in-process application service of one management cluster.

    Attributes:
        namespaces: The hold on the namespaces of what it accepts.
    """

    def __init__(self, ports: ServicePorts, *, cluster_id: ids.ManagementClusterID) -> None:
        self._ports = ports
        self._cluster_id = cluster_id
        self._gate = AdmissionGate(ports.catalog, ports.cluster)
        self.namespaces = NamespaceHold(ports.repository, ports.cluster)

    def closed(self, view: RecordView) -> Explanation | None:
        """Say why nothing may be given out to a record now; None while something may."""
        return self._gate.closed(view)

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
        if existing is not None:
            existing = await self.adopt(existing, view)
        try:
            resource = await self._accept(view, key, existing)
        except BrokerError as error:
            reason = error.shown_reason if isinstance(error, RefusedError) else error.reason
            return Admission(
                resource=existing, refusal=Explanation(reason=reason, message=str(error))
            )
        retried = existing is not None and view.spec.declaration.retry > existing.accepted.retry
        return Admission(resource=resource, retried=retried)

    async def adopt(self, existing: ProvisionedResource, view: RecordView) -> ProvisionedResource:
        """Remember which record speaks for an aggregate, whatever it declares.

        A cache that is behind shows a predecessor of the one that does: that one is not
        believed, or the true one would be a stranger to its own aggregate.

        Raises:
            StaleAggregateError: The record is gone, going though it was read living, or another
                one has its name.

        Idempotency: one that it knows costs nothing.
        """
        if existing.record == view.identity:
            return existing
        await self._assert_stands(view)
        if not existing.substrate.released:
            # A restored cluster's objects are the same machines under other uids. Of one that
            # was released the uid stays: a teardown tells by it that its going is no break-in.
            existing = transitions.known_as(existing, None)
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
        blueprint = await self._gate.admit(view, existing)
        if key is None:  # pragma: no cover - the gate has refused it
            raise AssignmentNotFoundError
        if existing is not None:
            entry = audit.retry(existing, view.spec.declaration)
            return await self._ports.repository.update(self._edited(existing, view), audit=entry)
        # Before anything is written: what lives elsewhere is asked for again and again.
        slug = await self._ports.repository.elsewhere_by_key(key)
        if slug is not None:
            raise LivesElsewhereError(slug)
        # A process that has just taken over may see one as it was before its deletion was asked
        # for, or one that was succeeded since; a second aggregate would come of it.
        await self._assert_stands(view)
        lost = await self._lost(view)
        fresh = self._new(view, key, blueprint, lost=lost)
        async with self.namespaces.one_more(view.namespace):
            return await self._ports.repository.create(fresh)

    async def _assert_stands(self, view: RecordView) -> None:
        if not await self._ports.cluster.records.record_stands(view.raw):
            message = f"cannot accept {view.name!r}: the record changed since it was read"
            raise StaleAggregateError(message)

    async def _lost(self, view: RecordView) -> ids.ProvisionedResourceID | None:
        """Return the id that a record with a substrate names and the store does not know.

        A store that came out of a backup lost what was accepted since. Under another id the
        function would compose another machine beside the one that is there.
        """
        named = view.named_resource
        if named is None or not view.spec.observed.exists:
            return None
        try:
            await self._ports.repository.get(named)
        except ProvisionedResourceNotFoundError:
            return named
        return None

    def _new(
        self,
        view: RecordView,
        key: ResourceKey,
        blueprint: BlueprintVersionSpec | None,
        *,
        lost: ids.ProvisionedResourceID | None,
    ) -> ProvisionedResource:
        identity = lost or self._ports.ids.provisioned_resource_id()
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
            # The Secrets of its lost generations may still be there, under their names.
            generation=(view.spec.observed.bootstrap_generation or 0) if lost else 0,
            created_at=now,
            updated_at=now,
        )

    def _edited(self, existing: ProvisionedResource, view: RecordView) -> ProvisionedResource:
        declared = view.spec.declaration
        retried = declared.retry > existing.accepted.retry
        starts_over = existing.may_retry(declared)
        # What is recreated is rendered with today's options; a machine that is there keeps its own.
        forgets = starts_over and not view.spec.observed.exists
        return replace(
            existing,
            phase=Phase.PENDING if starts_over else existing.phase,
            rendered_with=None if forgets else existing.rendered_with,
            retries=existing.retries + retried,
            recreations=0 if retried else existing.recreations,
            provisioning_since=None if retried else existing.provisioning_since,
            accepted=declared,
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
