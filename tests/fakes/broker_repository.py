"""The broker's repository in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import (
    AssignmentNotFoundError,
    InvalidInputError,
    LivesElsewhereError,
    ProvisionedResourceNotFoundError,
    StaleAggregateError,
)
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, ResourceKey
from reconciler.domain.events import lifecycle
from reconciler.domain.events.audit import AuditEntry
from reconciler.domain.events.lifecycle import LifecycleEvent
from reconciler.domain.protection import protection
from tests.fakes.census import InMemoryCensus
from tests.fakes.memory import MemoryStore


class InMemoryBrokerRepository(InMemoryCensus):
    """Keeps the promises of `ports.store.aggregates.BrokerRepository`."""

    def __init__(
        self,
        store: MemoryStore,
        cluster: ids.ManagementClusterID,
        *,
        check_placement: bool = False,
    ) -> None:
        super().__init__(store, cluster)
        self._check_placement = check_placement

    async def create(self, resource: ProvisionedResource) -> ProvisionedResource:
        live = self._live(resource.key)
        if live is not None and live.management_cluster_id != self.cluster:
            raise LivesElsewhereError(self.store.slug(live.management_cluster_id))
        if live is not None:
            return live
        placed = (
            resource.project_id in self.store.projects
            and resource.management_cluster_id in self.store.clusters
        )
        if self._check_placement and not placed:
            message = "cannot create provisioned resource: not placed"
            raise AssignmentNotFoundError(message)
        await self._claim(resource, ())
        self.store.resources[resource.id] = resource
        self.store.append_once(resource.id, lifecycle.requested(resource), resource.created_at)
        return resource

    async def get(self, resource_id: ids.ProvisionedResourceID) -> ProvisionedResource:
        if resource_id not in self.store.resources:
            message = "cannot find provisioned resource: no row has this id"
            raise ProvisionedResourceNotFoundError(message)
        return self.store.resources[resource_id]

    async def provisioning_for(self, resource_id: ids.ProvisionedResourceID) -> timedelta | None:
        found = self.store.resources.get(resource_id)
        since = None if found is None else found.provisioning_since
        return None if since is None else self.store.clock.now() - since

    def _since(self, stored: ProvisionedResource, wanted: ProvisionedResource) -> datetime | None:
        if wanted.provisioning_since is None:
            return None
        return stored.provisioning_since or self.store.clock.now()

    async def find_live(self, key: ResourceKey) -> ProvisionedResource | None:
        live = self._live(key)
        return live if live is None or live.management_cluster_id == self.cluster else None

    async def find_by_record(self, uid: str) -> ProvisionedResource | None:
        everything = self.store.resources.values()
        mine = [item for item in everything if item.management_cluster_id == self.cluster]
        found = [item for item in mine if item.record.uid == uid]
        return max(found, key=lambda item: (item.created_at, item.id), default=None)

    async def list_in_namespace(self, namespace: str) -> Sequence[ProvisionedResource]:
        return self._in_namespace(namespace)

    async def update(
        self,
        resource: ProvisionedResource,
        *,
        event: LifecycleEvent | None = None,
        audit: AuditEntry | None = None,
    ) -> ProvisionedResource:
        stored = await self.get(resource.id)
        if stored.version != resource.version:
            message = "cannot update provisioned resource: it changed since it was read"
            raise StaleAggregateError(message)
        await self._claim(resource, stored.protected)
        changed = replace(
            stored,
            phase=resource.phase,
            record=resource.record,
            accepted=resource.accepted,
            protected=resource.protected,
            bootstrap_token_id=resource.bootstrap_token_id,
            generation=resource.generation,
            updated_at=resource.updated_at,
            force_released_at=stored.force_released_at or resource.force_released_at,
            provisioning_since=self._since(stored, resource),
            enrolling_since=resource.enrolling_since,
            recreations=resource.recreations,
            recreating_since=resource.recreating_since,
            children=resource.children,
            rendered_with=resource.rendered_with,
            version=stored.version + 1,
        )
        self.store.resources[resource.id] = changed
        if audit is not None:
            self.store.audit_once(resource, audit)
        if event is not None:
            self.store.append_once(resource.id, event, resource.updated_at)
        return changed

    async def _claim(self, resource: ProvisionedResource, known: Sequence[ProtectedObject]) -> None:
        if not resource.enrolled:
            return
        others = [
            other
            for other in self._unfinished()
            if other.key.namespace == resource.key.namespace
            and other.management_cluster_id == resource.management_cluster_id
        ]
        protection.refuse_contested(resource, protection.added(resource, known), others)

    async def record_deletion_intent(self, resource: ProvisionedResource) -> ProvisionedResource:
        at = resource.deletion_requested_at
        if at is None:
            message = "cannot record deletion intent: deletion_requested_at must be set"
            raise InvalidInputError(message)
        stored = await self.get(resource.id)
        if stored.deletion_requested_at is not None:
            return stored
        requested = replace(
            stored,
            phase=resource.phase,
            deletion_requested_at=at,
            updated_at=max(stored.updated_at, at),
            version=stored.version + 1,
        )
        self.store.resources[resource.id] = requested
        for row in self.store.tokens.values():
            if row.resource_id == resource.id and not row.spent:
                row.revoked_at = at
        self.store.append_once(resource.id, lifecycle.deleting(requested), at)
        return requested
