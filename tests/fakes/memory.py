"""What the in-memory fakes of the broker's and the identity's stores share: their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events.audit import AuditAction, AuditEntry
from reconciler.domain.events.lifecycle import LifecycleEvent
from reconciler.domain.protection.shared_hold import SharedHold
from reconciler.ports.registration import DeniedRegistration, SigningKey
from reconciler.ports.store.tenancy import ProjectRow


class FrozenClock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self, at: datetime | None = None) -> None:
        self.at = at or datetime.now(UTC)

    def now(self) -> datetime:
        """Return the time that was set last."""
        return self.at

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.at += by


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """One row of the outbox."""

    type: str
    aggregate_sequence: int
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One row of the broker's audit, without its id."""

    at: datetime
    management_cluster_id: UUID
    project_id: UUID
    provisioned_resource_id: UUID
    namespace: str
    record_name: str
    action: str
    reason: str
    actor: str | None


@dataclass(slots=True, kw_only=True)
class TokenRow:
    """One bootstrap token."""

    id: ids.BootstrapTokenID
    project_id: ids.ProjectID
    resource_id: ids.ProvisionedResourceID
    generation: int
    digest: bytes
    issued_at: datetime
    expires_at: datetime
    consumed_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def spent(self) -> bool:
        """Tell whether it was consumed or revoked."""
        return self.consumed_at is not None or self.revoked_at is not None

    def state(self, now: datetime) -> BootstrapState:
        """Return its state at a time."""
        if self.consumed_at is not None:
            return BootstrapState.CONSUMED
        if self.revoked_at is not None:
            return BootstrapState.REVOKED
        return BootstrapState.EXPIRED if self.expires_at <= now else BootstrapState.ISSUED


@dataclass(slots=True, kw_only=True)
class NodeRow:
    """One node, live or a tombstone."""

    id: ids.NodeID
    project_id: ids.ProjectID
    domain_id: UUID
    resource_id: ids.ProvisionedResourceID
    token_id: ids.BootstrapTokenID
    public_key: bytes
    mesh_ip: str
    nsk_digest: bytes
    registered_at: datetime
    last_heartbeat_at: datetime | None = None
    deregistered_at: datetime | None = None
    reported_at: datetime | None = None
    other_nsk_digests: tuple[bytes, ...] = ()
    readmitted: int = 0

    @property
    def reported(self) -> bool:
        """Tell whether it ever made an authenticated call."""
        return self.reported_at is not None or self.last_heartbeat_at is not None


@dataclass(slots=True, kw_only=True)
class DomainRow:
    """One Domain."""

    id: UUID
    mesh_cidr: str
    key: SigningKey

    @property
    def signing_key_id(self) -> str:
        """Name its signing key."""
        return f"did:plexsphere:domain:{self.id}#key-1"


@dataclass(slots=True, kw_only=True)
class MemoryStore:
    """Every row, and the lock that stands for a transaction."""

    clock: FrozenClock = field(default_factory=FrozenClock)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    domains: dict[str, DomainRow] = field(default_factory=dict)
    projects: dict[ids.ProjectID, tuple[ProjectRow, UUID]] = field(default_factory=dict)
    clusters: dict[ids.ManagementClusterID, str] = field(default_factory=dict)
    placements: dict[ids.ProjectID, tuple[ids.ManagementClusterID, str, str]] = field(
        default_factory=dict
    )
    resources: dict[ids.ProvisionedResourceID, ProvisionedResource] = field(default_factory=dict)
    claimed: set[tuple[UUID, str, int]] = field(default_factory=set)
    events: dict[UUID, list[StoredEvent]] = field(default_factory=dict)
    tokens: dict[ids.BootstrapTokenID, TokenRow] = field(default_factory=dict)
    nodes: dict[ids.NodeID, NodeRow] = field(default_factory=dict)
    nonces: dict[tuple[ids.ProjectID, bytes], ids.BootstrapTokenID] = field(default_factory=dict)
    node_events: dict[UUID, list[StoredEvent]] = field(default_factory=dict)
    denials: list[DeniedRegistration] = field(default_factory=list)
    audit: list[AuditRow] = field(default_factory=list)
    holds: dict[tuple[ids.ManagementClusterID, SharedHold], SharedHold] = field(
        default_factory=dict
    )
    loosened: set[tuple[ids.ManagementClusterID, SharedHold]] = field(default_factory=set)
    thaws: list[tuple[ids.ManagementClusterID, datetime]] = field(default_factory=list)

    def audit_once(self, resource: ProvisionedResource, entry: AuditEntry) -> None:
        """Append an entry; a second force-release of one aggregate is left out."""
        known = {(row.provisioned_resource_id, row.action) for row in self.audit}
        once = entry.action is AuditAction.FORCE_RELEASE
        if once and (resource.id, entry.action.value) in known:
            return
        self.audit.append(
            AuditRow(
                at=self.clock.now(),
                management_cluster_id=resource.management_cluster_id,
                project_id=resource.project_id,
                provisioned_resource_id=resource.id,
                namespace=resource.key.namespace,
                record_name=resource.record.name,
                action=entry.action.value,
                reason=entry.reason,
                actor=entry.actor,
            )
        )

    def slug(self, cluster: ids.ManagementClusterID) -> str:
        """Return what a management cluster is called; its id where no test stored it."""
        return self.clusters.get(cluster, str(cluster))

    def append_once(self, resource_id: UUID, event: LifecycleEvent, at: datetime) -> None:
        """Append an event unless its (aggregate, type, generation) was appended before."""
        claim = (resource_id, event.type.value, event.generation)
        if claim in self.claimed:
            return
        self.claimed.add(claim)
        rows = self.events.setdefault(resource_id, [])
        payload = {
            "EventID": str(uuid7()),
            "OccurredAt": at.isoformat().replace("+00:00", "Z"),
            **event.data,
        }
        rows.append(
            StoredEvent(type=event.type.value, aggregate_sequence=len(rows) + 1, payload=payload)
        )

    def live_nodes(self, resource_id: ids.ProvisionedResourceID) -> Iterable[NodeRow]:
        """Return the live nodes of a resource."""
        return [
            node
            for node in self.nodes.values()
            if node.resource_id == resource_id and node.deregistered_at is None
        ]
