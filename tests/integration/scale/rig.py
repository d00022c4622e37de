"""A driver over a real database, with many nodes that are Ready and a cluster in memory.

Putting them together and letting time pass.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, LiteralString

import asyncpg
from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.catalog.tenancy import DomainSpec
from function.contract.record import Enrolment
from function.contract.strategy import MeshRole, Phase
from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.app.admission.service import Service, ServicePorts
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.converge.reconciler import Reconciler, ReconcilerOptions, ReconcilerPorts
from reconciler.app.guard.circuit_breaker import CircuitBreaker
from reconciler.app.projects.project_reconciler import ProjectReconciler
from reconciler.app.teardown.teardown import Teardown, TeardownPorts
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity
from tests.contract.worlds import World, postgres_world
from tests.fakes.databases import migrated_database
from tests.fakes.management_cluster import InMemoryManagementCluster, every_role
from tests.fakes.project_gateway import InMemoryProjectGateway
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import GONE, SampleCatalog

Where = tuple[str, str]

DOMAIN: Final = DomainSpec.model_validate({"meshCIDR": "100.64.0.0/29"})

LOOKS: Final = 4
"""Rounds of waiting for the second look, with some to spare."""

_WRITTEN: LiteralString = """
SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables
WHERE schemaname = 'plexsphere'
"""

_TOLD: LiteralString = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
"""An idle session keeps its counts to itself for some ten seconds; one that ends tells them. The
pool makes new ones."""

_ASKED: LiteralString = """
SELECT count(*) FROM plexsphere.provisioned_resources WHERE deletion_requested_at IS NOT NULL
"""


class Rig:
    """Standalone machines, Ready, and what drives them."""

    def __init__(self, dsn: str, store: World) -> None:
        self.dsn = dsn
        self.now = 0.0
        self.store = store
        self.cluster = InMemoryManagementCluster(xr=GONE)
        self.gateway = InMemoryProjectGateway(
            domains={"acme": DOMAIN}, projects={"shop": _project()}
        )
        self.records: dict[Where, dict[str, Any]] = {}
        shared: dict[str, Any] = {
            "repository": store.repository,
            "catalog": SampleCatalog(),
            "cluster": every_role(self.cluster),
            "clock": SystemClock(),
        }
        mesh: dict[str, Any] = {
            "tokens": store.issuer,
            "nodes": store.deregistrar,
            "holds": store.holds,
        }
        service = Service(ServicePorts(**shared, ids=UUIDv7Source()), cluster_id=samples.CLUSTER)
        teardown = Teardown(TeardownPorts(**shared, **mesh), service)
        options = ReconcilerOptions(
            enrolment=Enrolment(base_url="https://api.example.org"), token_ttl=timedelta(hours=1)
        )
        ports = ReconcilerPorts(**shared, **mesh, reachable=lambda: timedelta(days=1))
        self.driver = Controller(
            view=ClusterView(
                records=lambda: self.records,
                projects=self.gateway.view,
                breaker=CircuitBreaker(lambda: self.now),
            ),
            repository=store.repository,
            reconciler=Reconciler(ports, service, teardown, options=options),
            teardown=teardown,
            project_reconciler=ProjectReconciler(
                self.gateway,
                store.tenancy,
                SystemClock(),
                cluster="local",
                settle=service.namespaces.settle,
            ),
            cluster_id=samples.CLUSTER,
        )

    async def furnish(self, count: int) -> Rig:
        """Store the machines; their records say nothing yet."""
        for number in range(count):
            name = f"web-{number}"
            identity = ids.ProvisionedResourceID(uuid7())
            substrate = samples.SUBSTRATE.model_copy(update={"name": names.xr_name(identity)})
            xr = samples.DECLARATION.xr.model_copy(update={"name": name})
            made = samples.resource(
                id=identity,
                xr_name=names.xr_name(identity),
                key=replace(samples.resource().key, name=name),
                record=RecordIdentity(name=f"{name}-record", uid=f"uid-{number}"),
                accepted=samples.DECLARATION.model_copy(
                    update={"mesh_role": MeshRole.STANDALONE, "xr": xr}
                ),
                protected=(ProtectedObject(reference=substrate, seen=True, uid=f"vm-{number}"),),
            )
            stored = await self.store.repository.create(made)
            stored = await self.store.repository.update(replace(stored, phase=Phase.READY))
            self.cluster.compose(substrate, uid=f"vm-{number}")
            self.records[self.where(stored)] = _record(stored)
        return self

    @staticmethod
    def where(resource: ProvisionedResource) -> Where:
        return resource.key.namespace, resource.record.name

    async def sweep(self) -> None:
        """Sweep as the tickers do, and work until nothing waits."""
        await self.driver.sweep_projects()
        await self.driver.sweep_records()
        while self.driver.queue.depth:
            await self.driver.queue.settle()

    async def wait(self) -> None:
        """Work until every second look is over."""
        for _ in range(LOOKS):
            await self.sweep()
            self.now += 10.0

    async def asked(self) -> int:
        """Count the aggregates whose deletion was requested."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return int(await connection.fetchval(_ASKED))
        finally:
            await connection.close()

    async def written(self) -> int:
        """Count the rows that were ever written."""
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(_TOLD)
            return int(await connection.fetchval(_WRITTEN))
        finally:
            await connection.close()


@asynccontextmanager
async def rigged(count: int) -> AsyncIterator[Rig]:
    """Yield a rig with so many machines."""
    with migrated_database() as dsn:
        async with postgres_world(dsn) as store:
            yield await Rig(dsn, store).furnish(count)


def _record(resource: ProvisionedResource) -> dict[str, Any]:
    raw = samples.record(
        name=resource.record.name, uid=resource.record.uid, resourceVersion="1", generation=1
    )
    wire = resource.accepted.model_dump(mode="json", by_alias=True, exclude_none=True)
    raw["spec"] = {
        "declaration": wire,
        "substrate": [
            item.reference.model_dump(mode="json", by_alias=True) for item in resource.protected
        ],
        "observed": {"exists": True, "ready": True},
    }
    return raw


def _project() -> dict[str, Any]:
    return {
        "metadata": {"name": "shop", "generation": 1, "uid": "project-1"},
        "spec": {"id": str(samples.PROJECT), "domainRef": {"name": "acme"}},
    }
