"""What is marked in a cluster, what the store knows of it, and what people are told, in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from function.contract.strategy import Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.teardown.orphans import (
    MarkedObject,
    Orphan,
    OrphanFinding,
    Unrecorded,
    namespace,
)
from reconciler.ports.cluster.orphans import Kind
from reconciler.ports.cluster.substrates import NotAllowedError
from tests.fakes.memory import MemoryStore


@dataclass
class InMemoryMarkedObjects:
    """Keeps the promises of `ports.cluster.orphans.MarkedObjects`.

    Attributes:
        there: The objects that carry the record label.
        forbidden: Kinds that may not be listed.
        asked: The kinds that were listed, in order.
    """

    there: list[MarkedObject] = field(default_factory=list)
    forbidden: set[Kind] = field(default_factory=set)
    asked: list[Kind] = field(default_factory=list)

    async def list_marked(self, kind: Kind) -> Sequence[MarkedObject]:
        """Return the marked objects of a kind."""
        self.asked.append(kind)
        if kind in self.forbidden:
            message = f"cannot list {kind[1]} in {kind[0]}: it is forbidden to the reconciler"
            raise NotAllowedError(message)
        return [item for item in self.there if (item.api_version, item.kind) == kind]


@dataclass
class InMemoryOrphanTeller:
    """Keeps the promises of `ports.cluster.orphans.OrphanReporter`.

    Attributes:
        told: Every finding that it was asked to tell, in order.
        events: The Events that stand, by what makes each the same.
        going: Namespaces that take no Event any more.
        refused: Subjects of which none is taken.
    """

    told: list[Orphan] = field(default_factory=list)
    events: dict[tuple[str, str, str], Orphan] = field(default_factory=dict)
    going: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    async def tell(self, orphan: Orphan) -> None:
        """Record an Event on what a finding is about."""
        if orphan.subject in self.refused:
            raise OSError
        self.told.append(orphan)
        involved = orphan.involved
        if involved is None or not involved.namespace or involved.namespace in self.going:
            return
        same = (involved.uid, orphan.finding.event_reason, orphan.message)
        self.events.setdefault(same, orphan)


class InMemoryOrphanLedger:
    """Keeps the promises of `ports.cluster.orphans.OrphanLedger`.

    Attributes:
        standing: The findings that stand.
        writes: How often something was written.
    """

    def __init__(self, store: MemoryStore, cluster: ids.ManagementClusterID) -> None:
        self._store = store
        self._cluster = cluster
        self.standing: set[Orphan] = set()
        self.writes = 0

    async def kinds(self) -> Sequence[Kind]:
        """Return every kind that an aggregate ever protected."""
        found = [part.reference for item in self._mine() for part in item.protected]
        return sorted({(reference.api_version, reference.kind) for reference in found})

    async def unprotected(self, marked: Sequence[MarkedObject]) -> Sequence[MarkedObject]:
        """Return those that no aggregate protects, Deleted ones not counted."""
        protected = {
            (item.key.namespace, part.reference.kind, part.reference.name)
            for item in self._mine()
            if item.phase is not Phase.DELETED
            for part in item.protected
        }
        return [item for item in marked if (item.namespace, item.kind, item.name) not in protected]

    async def expected_records(self) -> Sequence[Unrecorded]:
        """Return where the record is of every aggregate whose deletion was not requested."""
        return [
            Unrecorded(namespace=item.key.namespace, record=item.record.name, handle=item.xr_name)
            for item in self._mine()
            if item.phase is not Phase.DELETED and item.deletion_requested_at is None
        ]

    async def left_nodes(self) -> Sequence[Orphan]:
        """Return the nodes in the mesh whose resource is Deleted."""
        return [
            Orphan(
                finding=OrphanFinding.NODE_OF_DELETED,
                subject=f"node {node.id}",
                detail=f"at {node.mesh_ip}, of {item.xr_name}, which is Deleted",
                involved=namespace(item.key.namespace),
            )
            for item in self._mine()
            if item.phase is Phase.DELETED
            for node in self._store.live_nodes(item.id)
        ]

    async def settle(self, found: Collection[Orphan]) -> Sequence[Orphan]:
        """Make what stands agree with what a sweep found; return what stood not before."""
        wanted = {(item.finding, item.subject): item for item in found}
        kept = {item for item in self.standing if (item.finding, item.subject) in wanted}
        known = {(item.finding, item.subject) for item in kept}
        fresh = [item for key, item in wanted.items() if key not in known]
        if fresh or kept != self.standing:
            self.writes += 1
            self.standing = kept | set(fresh)
        return fresh

    def _mine(self) -> Sequence[ProvisionedResource]:
        everything = self._store.resources.values()
        return [item for item in everything if item.management_cluster_id == self._cluster]
