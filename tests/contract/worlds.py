"""The same ports twice: on the fakes, and on a real database."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.secrets import TokenPlaintext
from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.postgres.aggregates.broker_repository import PostgresBrokerRepository
from reconciler.adapters.postgres.aggregates.hold_ledger import PostgresHoldLedger
from reconciler.adapters.postgres.aggregates.orphan_ledger import PostgresOrphanLedger
from reconciler.adapters.postgres.aggregates.tenancy_repository import PostgresTenancyRepository
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.adapters.postgres.registration.enrolment_store import PostgresEnrolmentStore
from reconciler.adapters.postgres.registration.node_deregistrar import PostgresNodeDeregistrar
from reconciler.adapters.postgres.registration.token_issuer import PostgresTokenIssuer
from reconciler.app.registration.registration import RegistrationPorts, RegistrationService
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.registration import RepeatDetail
from reconciler.domain.identity.registration_body import RegistrationBody
from reconciler.ports.cluster.orphans import OrphanLedger
from reconciler.ports.registration import DeniedRegistration, EnrolmentStore, Registered
from reconciler.ports.store.aggregates import (
    BrokerRepository,
    HoldLedger,
    IssuedToken,
    NodeDeregistrar,
    TokenIssuer,
)
from reconciler.ports.store.tenancy import TenancyRepository
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.fakes.budget import unlimited
from tests.fakes.hold_ledger import InMemoryHoldLedger
from tests.fakes.identity import (
    InMemoryEnrolmentStore,
    InMemoryNodeDeregistrar,
    InMemoryTenancyRepository,
    InMemoryTokenIssuer,
)
from tests.fakes.memory import AuditRow, MemoryStore, StoredEvent
from tests.fakes.orphans import InMemoryOrphanLedger
from tests.unit.reconciler import samples

MESH = "100.64.0.0/29"
"""Six hosts: small enough to run out of."""
HOUR = timedelta(hours=1)
ELSEWHERE = ids.management_cluster_id("elsewhere")


ENROLMENTS = """
SELECT at, code, status, remote_address, project_id, bootstrap_token_id, node_id, detail
FROM plexsphere.enrolment_evidence
UNION ALL
SELECT at, code, status, remote_address, project_id, bootstrap_token_id, node_id, detail
FROM plexsphere.enrolment_audit
ORDER BY at
"""


class Backdoor(Protocol):
    """What tests see and do past the ports."""

    async def events(self, resource: UUID) -> Sequence[StoredEvent]:
        """Return an aggregate's outbox rows in order."""
        ...

    async def audit(self, resource: UUID) -> Sequence[AuditRow]:
        """Return what was audited of an aggregate, in order."""
        ...

    async def age(self, token: ids.BootstrapTokenID, by: timedelta) -> None:
        """Make a token older."""
        ...

    async def denials(self) -> Sequence[DeniedRegistration]:
        """Return the audited denials in order."""
        ...

    async def readmissions(self) -> Sequence[DeniedRegistration]:
        """Return the audited readmissions in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One set of adapters over one store that holds a Domain, a Project and a cluster.

    Attributes:
        foreign: The repository of a cluster that is not stored until a test stores it.
        foreign_holds: The ledger of a cluster that is not stored until a test stores it.
        foreign_orphans: What the store knows of that cluster's leftovers.
    """

    repository: BrokerRepository
    foreign: BrokerRepository
    issuer: TokenIssuer
    deregistrar: NodeDeregistrar
    holds: HoldLedger
    foreign_holds: HoldLedger
    orphans: OrphanLedger
    foreign_orphans: OrphanLedger
    tenancy: TenancyRepository
    enrolment_store: EnrolmentStore
    backdoor: Backdoor
    registered: list[ids.ProvisionedResourceID]

    @property
    def enrolment(self) -> RegistrationService:
        """The application service over this world's store."""
        ports = RegistrationPorts(
            store=self.enrolment_store,
            secrets=SystemSecretSource(env="prod"),
            ids=UUIDv7Source(),
            clock=SystemClock(),
            project_budget=unlimited(),
        )
        return RegistrationService(ports, on_registered=self.registered.append)

    async def furnish(self) -> World:
        """Store what every test refers to."""
        await self.tenancy.ensure_domain("acme", MESH)
        await self.tenancy.ensure_project(samples.PROJECT, "shop", "acme")
        await self.tenancy.ensure_cluster("local", "Local")
        return self

    async def resource(self, name: str = "web-1", **changes: Any) -> ProvisionedResource:
        """Store an aggregate of its own."""
        return await self.repository.create(aggregate(name, **changes))

    async def neighbour(self, name: str) -> ProvisionedResource:
        """Store an aggregate of another Project in the same Domain."""
        project = await self.tenancy.ensure_project(None, "neighbour", "acme")
        key = replace(samples.resource().key, project_id=project, name=name)
        return await self.resource(name, project_id=project, key=key)

    async def token(self, resource: ProvisionedResource, generation: int = 1) -> IssuedToken:
        """Issue a token."""
        drawn = await self.issuer.draw(resource, generation=generation)
        return await self.issuer.issue(resource, drawn, ttl=HOUR)

    async def register(
        self, resource: ProvisionedResource, token: IssuedToken, **changes: Any
    ) -> Registered | Denial:
        """Register a node."""
        return await self.enrolment.register(
            body(resource, token, **changes), remote_address="192.0.2.1"
        )


def aggregate(name: str = "web-1", **changes: Any) -> ProvisionedResource:
    """Build an aggregate with an id, a key and a record of its own."""
    identity = ids.ProvisionedResourceID(uuid7())
    sample = samples.resource()
    reference = sample.protected[0].reference.model_copy(update={"name": names.xr_name(identity)})
    values: dict[str, Any] = {
        "id": identity,
        "xr_name": names.xr_name(identity),
        "key": replace(sample.key, name=name),
        "record": RecordIdentity(name=f"{name}-abc", uid=f"record-of-{name}"),
        "protected": (ProtectedObject(reference=reference),),
    }
    return samples.resource(**{**values, **changes})


def body(resource: ProvisionedResource, token: IssuedToken, **changes: Any) -> RegistrationBody:
    """Build the body of a registration that is in order."""
    values: dict[str, Any] = {
        "project_id": str(resource.project_id),
        "resource_handle": resource.xr_name,
        "bootstrap_token": token.plaintext,
        "nonce": f"nonce-of-{token.id}",
        "public_key": base64.b64encode(token.id.bytes * 2).decode(),
    }
    return RegistrationBody(**{**values, **changes})


def unknown_token() -> TokenPlaintext:
    """Mint a token that nobody stored."""
    return SystemSecretSource(env="prod").token(samples.PROJECT)


class _MemoryBackdoor:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def events(self, resource: UUID) -> Sequence[StoredEvent]:
        return self._store.events.get(resource, []) or self._store.node_events.get(resource, [])

    async def audit(self, resource: UUID) -> Sequence[AuditRow]:
        return [row for row in self._store.audit if row.provisioned_resource_id == resource]

    async def age(self, token: ids.BootstrapTokenID, by: timedelta) -> None:
        row = self._store.tokens[token]
        row.issued_at -= by
        row.expires_at -= by

    async def denials(self) -> Sequence[DeniedRegistration]:
        return [entry for entry in self._store.denials if entry.status >= 400]

    async def readmissions(self) -> Sequence[DeniedRegistration]:
        return [entry for entry in self._store.denials if entry.status < 400]


class _PostgresBackdoor:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def events(self, resource: UUID) -> Sequence[StoredEvent]:
        rows = await self._pool.fetch(
            "SELECT event_type, aggregate_sequence, payload FROM plexsphere.outbox_events "
            "WHERE aggregate_id = $1 ORDER BY sequence",
            resource,
        )
        return [
            StoredEvent(
                type=row["event_type"],
                aggregate_sequence=row["aggregate_sequence"],
                payload=row["payload"],
            )
            for row in rows
        ]

    async def audit(self, resource: UUID) -> Sequence[AuditRow]:
        columns = ", ".join(item.name for item in fields(AuditRow))
        rows = await self._pool.fetch(
            f"SELECT {columns} FROM plexsphere.broker_audit "  # noqa: S608 - our own columns
            "WHERE provisioned_resource_id = $1 ORDER BY id",
            resource,
        )
        return [AuditRow(**row) for row in rows]

    async def age(self, token: ids.BootstrapTokenID, by: timedelta) -> None:
        await self._pool.execute(
            "UPDATE plexsphere.bootstrap_tokens "
            "SET issued_at = issued_at - $2::interval, "
            "expires_at = expires_at - $2::interval WHERE id = $1",
            token,
            by,
        )

    async def denials(self) -> Sequence[DeniedRegistration]:
        return [entry for entry in await self._enrolments() if entry.status >= 400]

    async def readmissions(self) -> Sequence[DeniedRegistration]:
        return [entry for entry in await self._enrolments() if entry.status < 400]

    async def _enrolments(self) -> Sequence[DeniedRegistration]:
        rows = await self._pool.fetch(ENROLMENTS)
        return [
            DeniedRegistration(
                code=row["code"],
                status=row["status"],
                remote_address=row["remote_address"],
                project_id=row["project_id"],
                token_id=row["bootstrap_token_id"],
                node_id=row["node_id"],
                detail=None if row["detail"] is None else RepeatDetail(row["detail"]),
            )
            for row in rows
        ]


async def memory_world() -> World:
    """Build a world of fakes."""
    store = MemoryStore()
    world = World(
        repository=InMemoryBrokerRepository(store, samples.CLUSTER, check_placement=True),
        foreign=InMemoryBrokerRepository(store, ELSEWHERE, check_placement=True),
        issuer=InMemoryTokenIssuer(store),
        deregistrar=InMemoryNodeDeregistrar(store),
        holds=InMemoryHoldLedger(store, samples.CLUSTER, check_placement=True),
        foreign_holds=InMemoryHoldLedger(store, ELSEWHERE, check_placement=True),
        orphans=InMemoryOrphanLedger(store, samples.CLUSTER),
        foreign_orphans=InMemoryOrphanLedger(store, ELSEWHERE),
        tenancy=InMemoryTenancyRepository(store),
        enrolment_store=InMemoryEnrolmentStore(store),
        backdoor=_MemoryBackdoor(store),
        registered=[],
    )
    return await world.furnish()


@asynccontextmanager
async def postgres_world(dsn: str) -> AsyncIterator[World]:
    """Build a world on a migrated database."""
    secrets = SystemSecretSource(env="prod")
    pool = await open_pool(dsn)
    store = FencedStore(pool)
    try:
        world = World(
            repository=PostgresBrokerRepository(store, samples.CLUSTER),
            foreign=PostgresBrokerRepository(store, ELSEWHERE),
            issuer=PostgresTokenIssuer(store, secrets),
            deregistrar=PostgresNodeDeregistrar(store),
            holds=PostgresHoldLedger(store, samples.CLUSTER),
            foreign_holds=PostgresHoldLedger(store, ELSEWHERE),
            orphans=PostgresOrphanLedger(store, samples.CLUSTER),
            foreign_orphans=PostgresOrphanLedger(store, ELSEWHERE),
            tenancy=PostgresTenancyRepository(store, secrets),
            enrolment_store=PostgresEnrolmentStore(pool),
            backdoor=_PostgresBackdoor(pool),
            registered=[],
        )
        yield await world.furnish()
    finally:
        await pool.close()
