"""A whole broker on fakes: the ports, a record, and what function and Crossplane would do."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.record import Enrolment, SubstrateReference
from function.contract.strategy import Phase
from reconciler.adapters.clock import UUIDv7Source
from reconciler.app.admission.service import Service, ServicePorts
from reconciler.app.converge.reconciler import Reconciler, ReconcilerOptions, ReconcilerPorts
from reconciler.app.teardown.teardown import Teardown, TeardownPorts
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.catalog import ProjectView
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.fakes.catalog import InMemoryCatalog
from tests.fakes.hold_ledger import InMemoryHoldLedger
from tests.fakes.identity import InMemoryNodeDeregistrar, InMemoryTokenIssuer
from tests.fakes.management_cluster import InMemoryManagementCluster, every_role
from tests.fakes.memory import FrozenClock, MemoryStore, NodeRow
from tests.unit.reconciler import samples

EFFECTS = frozenset(
    {
        "create", "update", "record_deletion_intent", "issue", "extend", "revoke", "deregister",
        "reclaim", "hold_namespace", "create_token_secret", "delete_token_secret",
        "ensure_provider_config", "delete_provider_config", "hold_credentials",
        "render_external_secret", "release", "remember", "loosen", "forget", "delete_object",
        "let_go", "hold_below", "write_status", "remove_finalizer", "record_event",
        "delete_loose_record",
    }
)  # fmt: skip


RESTART = timedelta(seconds=31)
"""How long a process is away: longer than the pause between two generations."""


class CrashError(Exception):
    """The process died right after an effect."""


@dataclass
class Fuse:
    """Lets a number of effects happen, then kills the process once.

    Attributes:
        after: Effects until the crash; None never crashes.
    """

    after: int | None = None
    burnt: int = 0

    def spend(self) -> None:
        self.burnt += 1
        if self.after is not None and self.burnt == self.after:
            raise CrashError


class Mortal:
    """A port whose process may die right after any effect."""

    def __init__(self, port: Any, fuse: Fuse) -> None:
        self._port = port
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Awaitable[Any]] = getattr(self._port, name)
        if name not in EFFECTS:
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            result = await method(*args, **kwargs)
            self._fuse.spend()
            return result

        return call


class SampleCatalog(InMemoryCatalog):
    """The samples' catalogue."""

    def __init__(self) -> None:
        super().__init__(
            blueprints={samples.BLUEPRINT_NAME: samples.BLUEPRINT},
            credentials={samples.CREDENTIAL_NAME: samples.CREDENTIAL},
            clouds={samples.CLOUD_NAME: samples.CLOUD},
        )
        self.place()

    def place(self, *, ready: bool = True) -> None:
        """Place the Project, or place it anew."""
        self.projects[samples.PROJECT] = ProjectView(
            id=samples.PROJECT, name="shop", namespace=samples.NAMESPACE, namespace_ready=ready
        )


@dataclass
class World:
    """One record and everything around it.

    Attributes:
        reachable: For how long nodes could get through without a break.
        steady: What is seen of the cluster is believed.
        clock: The process's own; None when it agrees with the database's.
        base_url: The one that the process is set to.
        makes: What makes the tick.
        cluster_id: Which management cluster it is.
    """

    fuse: Fuse = field(default_factory=Fuse)
    catalog: SampleCatalog = field(default_factory=SampleCatalog)
    cluster: InMemoryManagementCluster = field(default_factory=InMemoryManagementCluster)
    store: MemoryStore = field(default_factory=lambda: MemoryStore(clock=FrozenClock(samples.NOW)))
    raw: dict[str, Any] = field(default_factory=samples.record)
    reachable: timedelta = timedelta(days=365)
    steady: bool = True
    clock: FrozenClock | None = None
    base_url: str = "https://api.example.org"
    makes: type[Reconciler] = Reconciler
    cluster_id: ids.ManagementClusterID = samples.CLUSTER

    def __post_init__(self) -> None:
        repository = InMemoryBrokerRepository(self.store, self.cluster_id)
        shared: dict[str, Any] = {
            "repository": Mortal(repository, self.fuse),
            "catalog": self.catalog,
            "cluster": every_role(Mortal(self.cluster, self.fuse)),
            "clock": self.clock or self.store.clock,
        }
        mesh: dict[str, Any] = {
            "tokens": Mortal(InMemoryTokenIssuer(self.store), self.fuse),
            "nodes": Mortal(InMemoryNodeDeregistrar(self.store), self.fuse),
            "holds": Mortal(InMemoryHoldLedger(self.store, self.cluster_id), self.fuse),
        }
        service = Service(ServicePorts(**shared, ids=UUIDv7Source()), cluster_id=self.cluster_id)
        options = ReconcilerOptions(
            enrolment=Enrolment(base_url=self.base_url), token_ttl=timedelta(hours=1)
        )
        self.teardown = Teardown(TeardownPorts(**shared, **mesh), service)
        ports = ReconcilerPorts(
            **shared, **mesh, reachable=lambda: self.reachable, steady=lambda: self.steady
        )
        self.tick_ = self.makes(ports, service, self.teardown, options=options)

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.raw.get("status") or {}
        return found

    @property
    def resource(self) -> ProvisionedResource:
        return max(self.store.resources.values(), key=lambda item: item.created_at)

    @property
    def finalizer(self) -> bool:
        return names.FINALIZER in self.raw["metadata"].get("finalizers", [])

    async def tick(self) -> float | None:
        """Tick once, as a fresh process would: on a copy, as a cache holds it."""
        raw = copy.deepcopy(self.raw)
        try:
            return await self.tick_.run(raw)
        finally:
            self._take_over(raw)

    def _take_over(self, raw: dict[str, Any]) -> None:
        if "status" in raw:
            self.raw["status"] = raw["status"]
        self.raw["metadata"]["finalizers"] = raw["metadata"].get("finalizers", [])

    async def tick_until_quiet(self) -> None:
        """Tick over crashes until nothing changes any more; bounded."""
        for _ in range(30):
            before = (copy.deepcopy(self.raw), len(self.cluster.journal))
            try:
                await self.tick()
            except CrashError:
                self.store.clock.advance(RESTART)
                continue
            self.react()
            if before == (self.raw, len(self.cluster.journal)):
                return
        message = "the world does not come to rest"
        raise AssertionError(message)

    def react(self) -> None:
        """Do what the function and Crossplane do with the record as it is."""
        status = self.status
        reference = self._reference()
        terminating = "deletionTimestamp" in self.raw["metadata"]
        if reference is None:
            return
        live = self.cluster.objects.get((reference.api_version, reference.kind, reference.name))
        if status.get("substrate") == "Absent":
            if self.cluster.xr == ALIVE:
                self.raw["spec"]["released"] = True
            if live is not None and live.released:
                self.cluster.drop(reference)
        else:
            self.raw["spec"].pop("released", None)
            if live is None and not terminating and self._token_at_hand():
                self.cluster.compose(reference, uid=f"substrate-{self.resource.generation}")
        self._observe(reference)

    def _token_at_hand(self) -> bool:
        secret = (self.status.get("bootstrap") or {}).get("secretRef")
        return secret is not None and (samples.NAMESPACE, secret["name"]) in self.cluster.secrets

    def _reference(self) -> SubstrateReference | None:
        name = self.status.get("xrName")
        if name is None:
            return None
        return samples.SUBSTRATE.model_copy(update={"name": name})

    def _observe(self, reference: SubstrateReference) -> None:
        live = self.cluster.objects.get((reference.api_version, reference.kind, reference.name))
        exists = live is not None
        observed = {"exists": exists, "ready": exists, "uid": live.uid if live else None}
        self.raw["spec"]["observed"] = observed

    def register(self) -> None:
        """Enrol the node, as `POST /v1/register` would."""
        token = self.resource.bootstrap_token_id
        assert token is not None
        self.store.tokens[token].consumed_at = self.store.clock.now()
        node = ids.NodeID(uuid7())
        self.store.nodes[node] = NodeRow(
            id=node,
            project_id=samples.PROJECT,
            domain_id=UUID(int=1),
            resource_id=self.resource.id,
            token_id=token,
            public_key=b"",
            mesh_ip="100.64.0.1",
            nsk_digest=b"",
            registered_at=self.store.clock.now(),
        )

    def delete(self, *, xr: XRFacts) -> None:
        """Delete the record; `xr` says what becomes of its XR."""
        self.raw["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        self.cluster.xr = xr

    async def until_ready(self) -> None:
        """Take it to Ready, with whatever crashes the fuse holds."""
        await self.tick_until_quiet()
        self.register()
        await self.tick_until_quiet()
        assert self.resource.phase is Phase.READY

    def event_types(self) -> list[str]:
        """Return the outbox of the current aggregate."""
        return [row.type for row in self.store.events.get(self.resource.id, [])]


GONE = XRFacts(exists=False, terminating=False, composing_finalizer=False, paused=False)
ALIVE = XRFacts(exists=True, terminating=False, composing_finalizer=True, paused=False)
PAUSED = XRFacts(exists=True, terminating=False, composing_finalizer=True, paused=True)
GOING = XRFacts(exists=True, terminating=True, composing_finalizer=True, paused=False)
LEFT = XRFacts(exists=True, terminating=True, composing_finalizer=False, paused=False)
