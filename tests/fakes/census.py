"""Counting aggregates in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from function.contract.strategy import Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource, ResourceKey
from reconciler.ports.store.census import PAGE, CredentialUse, RecordEntry
from tests.fakes.memory import MemoryStore


class InMemoryCensus:
    """Keeps the promises of `ports.store.census.Census`."""

    def __init__(self, store: MemoryStore, cluster: ids.ManagementClusterID) -> None:
        self.store = store
        self.cluster = cluster
        self._unsettled_after: dict[ids.ManagementClusterID, tuple[datetime, UUID]] = {}

    async def count_in_namespace(self, namespace: str) -> int:
        return len(self._in_namespace(namespace))

    async def credential_uses(self, namespace: str) -> Sequence[CredentialUse]:
        used = {
            (item.accepted.cloud_credential, item.enrolled)
            for item in self._in_namespace(namespace)
            if item.accepted.cloud_credential is not None
        }
        return [
            CredentialUse(credential=credential, enrolled=enrolled)
            for credential, enrolled in sorted(used)
            if credential is not None
        ]

    async def sightings(
        self, cluster: ids.ManagementClusterID, *, after: RecordEntry | None = None
    ) -> Sequence[RecordEntry]:
        mine = [item for item in self._unfinished() if item.management_cluster_id == cluster]
        if after is not None:
            place = (after.created_at, after.id)
            mine = [item for item in mine if (item.created_at, item.id) > place]
        return [self._sighting(item) for item in mine[:PAGE]]

    async def sightings_of(
        self, cluster: ids.ManagementClusterID, *, namespace: str, record: str
    ) -> Sequence[RecordEntry]:
        return [
            self._sighting(item)
            for item in self._unfinished()
            if item.management_cluster_id == cluster
            and (item.key.namespace, item.record.name) == (namespace, record)
        ]

    async def unsettled(
        self, cluster: ids.ManagementClusterID, *, namespace: str = "", record: str = ""
    ) -> Sequence[ids.ProvisionedResourceID]:
        found = [
            item
            for item in self.store.resources.values()
            if item.phase is Phase.DELETED
            and item.management_cluster_id == cluster
            and namespace in ("", item.key.namespace)
            and record in ("", item.record.name)
            and any(part.sibling and not part.released for part in item.protected)
        ]
        whole = not namespace and not record
        after = self._unsettled_after.pop(cluster, None) if whole else None
        page = _in_order(
            item for item in found if after is None or (item.created_at, item.id) > after
        )[:PAGE]
        if whole and len(page) == PAGE:
            self._unsettled_after[cluster] = (page[-1].created_at, page[-1].id)
        return [item.id for item in page]

    async def emptied(self, cluster: ids.ManagementClusterID) -> Sequence[str]:
        mine = [
            item for item in self.store.resources.values() if item.management_cluster_id == cluster
        ]
        used = {item.key.namespace for item in mine if item.phase is not Phase.DELETED}
        return sorted({item.key.namespace for item in mine} - used)

    async def elsewhere_by_record(self, uids: Sequence[str]) -> str | None:
        homes = {
            item.management_cluster_id for item in self._unfinished() if item.record.uid in uids
        }
        slugs = sorted(self.store.slug(home) for home in homes - {self.cluster})
        return slugs[0] if slugs else None

    async def elsewhere_by_key(self, key: ResourceKey) -> str | None:
        live = self._live(key)
        here = live is None or live.management_cluster_id == self.cluster
        return None if live is None or here else self.store.slug(live.management_cluster_id)

    async def prove_writable(self) -> None:
        return

    async def thawed(self, cluster: ids.ManagementClusterID, *, within: timedelta) -> bool:
        now = self.store.clock.now()
        return any(of == cluster and at > now - within for of, at in self.store.thaws)

    def _live(self, key: ResourceKey) -> ProvisionedResource | None:
        everything = self.store.resources.values()
        live = (item for item in everything if item.deletion_requested_at is None)
        return next((item for item in live if item.key == key), None)

    def _unfinished(self) -> Sequence[ProvisionedResource]:
        everything = self.store.resources.values()
        return _in_order(item for item in everything if item.phase is not Phase.DELETED)

    def _in_namespace(self, namespace: str) -> Sequence[ProvisionedResource]:
        return [
            item
            for item in self._unfinished()
            if (item.management_cluster_id, item.key.namespace) == (self.cluster, namespace)
        ]

    def _sighting(self, item: ProvisionedResource) -> RecordEntry:
        nodes = list(self.store.live_nodes(item.id))
        return RecordEntry(
            id=item.id,
            created_at=item.created_at,
            namespace=item.key.namespace,
            record=item.record.name,
            credential=item.accepted.cloud_credential,
            asked=item.deletion_requested_at is not None,
            version=item.version,
            expects_node=item.node_expected,
            node=nodes[0].id if nodes else None,
        )


def _in_order(items: Iterable[ProvisionedResource]) -> list[ProvisionedResource]:
    return sorted(items, key=lambda item: (item.created_at, item.id))
