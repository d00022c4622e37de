"""Many aggregates of one cluster on fakes, their cached records, and a driver over both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.strategy import MeshRole, Phase
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.guard.circuit_breaker import CircuitBreaker
from reconciler.app.projects.project_reconciler import ProjectReconciler
from reconciler.app.protection.namespace_hold import NamespaceHold
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.fakes.memory import FrozenClock, MemoryStore
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import GONE, World

Where = tuple[str, str]
LOOKS = 4
"""Rounds of waiting for the second look, with some to spare."""


@dataclass
class Ticks:
    """A tick that only notes which record it was for, and says when to come back."""

    world: World
    done: list[str] = field(default_factory=list)
    again: float | None = None

    @property
    def credentials(self) -> Any:
        return self.world.tick_.credentials

    @property
    def configs(self) -> Any:
        return self.world.tick_.configs

    @property
    def namespaces(self) -> NamespaceHold:
        return self.world.tick_.namespaces

    async def run(self, raw: dict[str, Any]) -> float | None:
        self.done.append(raw["metadata"]["name"])
        return self.again


class Crowd:
    """A number of Ready aggregates with their records; no node is expected for them."""

    def __init__(
        self,
        size: int,
        *,
        role: MeshRole = MeshRole.STANDALONE,
        cluster: ids.ManagementClusterID = samples.CLUSTER,
        store: MemoryStore | None = None,
    ) -> None:
        self._role = role
        self._cluster = cluster
        self.world = World(store=store or MemoryStore(clock=FrozenClock(samples.NOW)))
        self.world.cluster.xr = GONE
        self.records: dict[Where, dict[str, Any]] = {}
        self.live: set[Where] = set()
        self.lists = 0
        self._lost: dict[Where, dict[str, Any]] = {}
        self.resources = [self._make(number) for number in range(size)]
        self.ticks = Ticks(self.world)
        clock = self.world.store.clock
        self.breaker = CircuitBreaker(lambda: clock.now().timestamp())
        self.driver = Controller(
            view=ClusterView(
                records=lambda: self.records,
                projects=dict,
                record_exists=self._exists,
                list_anew=self._list_anew,
                breaker=self.breaker,
            ),
            repository=InMemoryBrokerRepository(self.world.store, cluster),
            reconciler=cast("Any", self.ticks),
            teardown=self.world.teardown,
            project_reconciler=cast("ProjectReconciler", None),
            cluster_id=cluster,
        )

    def _make(self, number: int) -> ProvisionedResource:
        name = f"web-{number}"
        key = replace(samples.resource().key, name=name)
        identity = ids.ProvisionedResourceID(uuid7())
        substrate = samples.SUBSTRATE.model_copy(update={"name": names.xr_name(identity)})
        resource = samples.resource(
            id=identity,
            xr_name=names.xr_name(identity),
            protected=(ProtectedObject(reference=substrate),),
            key=key,
            management_cluster_id=self._cluster,
            record=RecordIdentity(name=f"{name}-record", uid=f"uid-{number}"),
            accepted=samples.DECLARATION.model_copy(update={"mesh_role": self._role}),
            phase=Phase.READY,
        )
        self.world.store.resources[resource.id] = resource
        self.records[self.where(resource)] = {
            "metadata": {
                "namespace": key.namespace,
                "name": resource.record.name,
                "uid": resource.record.uid,
                "resourceVersion": "1",
            }
        }
        return resource

    @staticmethod
    def where(resource: ProvisionedResource) -> Where:
        return resource.key.namespace, resource.record.name

    async def _exists(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self.live

    def _list_anew(self) -> None:
        """List as a cache does: what is live is found, and told of."""
        self.lists += 1
        self.restore()

    def restore(self) -> None:
        """Let what is live be there again, and be told of."""
        for resource in self.resources:
            where = self.where(resource)
            if where in self.live and where not in self.records:
                self.records[where] = self._lost[where]
                self.driver.changed("provisioningrecords", where)

    def lose(self, resources: Iterable[ProvisionedResource], *, watch: bool) -> None:
        """Let records vanish without a deletion; by the watch each is heard of."""
        for resource in resources:
            self._lost[self.where(resource)] = self.records.pop(self.where(resource))
            if watch:
                self.driver.changed("provisioningrecords", self.where(resource))

    async def hear_of(self, resources: Iterable[ProvisionedResource]) -> None:
        """Hear that nodes registered, at each look until every second look is over."""
        known = list(resources)
        for _ in range(LOOKS):
            for resource in known:
                self.driver.registered(resource.id)
            await self.settle()
            self.world.store.clock.advance(timedelta(seconds=10))

    async def settle(self) -> None:
        """Work off what is asked for, and what that asks for."""
        while self.driver.queue.depth:
            await self.driver.queue.settle()

    async def work(self, *, sweep: bool = True) -> None:
        """Work until every second look is over."""
        for _ in range(LOOKS):
            if sweep:
                await self.driver.sweep_records()
            await self.settle()
            self.world.store.clock.advance(timedelta(seconds=10))

    def asked(self) -> int:
        """Count the aggregates whose deletion was requested."""
        rows = self.world.store.resources.values()
        return sum(row.deletion_requested_at is not None for row in rows)
