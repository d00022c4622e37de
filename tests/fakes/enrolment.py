"""Nodes and their registrations in memory."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

from reconciler.domain.aggregate import ids
from reconciler.domain.identity.peers import Peer, Peers
from reconciler.domain.identity.registration import (
    PriorRegistration,
    RegistrationFacts,
    TokenFacts,
)
from reconciler.domain.identity.registration_body import RegistrationRequest
from reconciler.ports.registration import (
    AllocationLostError,
    DeniedRegistration,
    MeshView,
    NewNode,
    NodeCredential,
    NodeState,
    RegistrationUnit,
)
from reconciler.ports.store.aggregates import RegisteredNode
from tests.fakes.memory import MemoryStore, NodeRow, StoredEvent, TokenRow

REST = timedelta(minutes=10)
"""How long an address that was given back is the last resort."""


class InMemoryNodeDeregistrar:
    """Keeps the promises of `ports.store.aggregates.NodeDeregistrar`."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    async def deregister(self, token: ids.BootstrapTokenID) -> None:
        row = self.store.tokens.get(token)
        for node in () if row is None else self.store.live_nodes(row.resource_id):
            _leave(self.store, node)

    async def reclaim(self, token: ids.BootstrapTokenID) -> bool:
        row = self.store.tokens.get(token)
        for node in () if row is None else self.store.live_nodes(row.resource_id):
            if not node.reported:
                _leave(self.store, node)
                return True
        return False

    async def node_registered(self, token: ids.BootstrapTokenID) -> bool:
        return await self.find_node(token) is not None

    async def find_node(self, token: ids.BootstrapTokenID) -> RegisteredNode | None:
        row = self.store.tokens.get(token)
        for node in () if row is None else self.store.live_nodes(row.resource_id):
            return RegisteredNode(
                id=node.id,
                mesh_ip=node.mesh_ip,
                registered_at=node.registered_at,
                age=self.store.clock.now() - node.registered_at,
                reported=node.reported,
            )
        return None


class InMemoryEnrolmentStore:
    """Keeps the promises of `ports.registration.EnrolmentStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    @asynccontextmanager
    async def registration(self) -> AsyncIterator[RegistrationUnit]:
        async with self.store.lock:
            rows = ("tokens", "nodes", "nonces", "node_events", "denials")
            before = copy.deepcopy({name: getattr(self.store, name) for name in rows})
            try:
                yield _Registration(self.store)
            except BaseException:
                for name, value in before.items():
                    setattr(self.store, name, value)
                raise

    async def record_denial(self, denial: DeniedRegistration) -> None:
        self.store.denials.append(denial)

    async def find_credential(self, node_id: ids.NodeID) -> NodeCredential | None:
        node = self.store.nodes.get(node_id)
        if node is None:
            return None
        return NodeCredential(
            node_id=node.id,
            nsk_digest=node.nsk_digest,
            deregistered=node.deregistered_at is not None,
            other_nsk_digests=node.other_nsk_digests,
            reported=node.reported,
        )

    async def record_report(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> bool:
        node = self.store.nodes.get(node_id)
        if node is None or node.deregistered_at is not None or node.reported:
            return False
        known = {node.nsk_digest, *node.other_nsk_digests}
        if nsk_digest not in known:
            return False
        node.nsk_digest, node.other_nsk_digests = nsk_digest, tuple(known - {nsk_digest})
        node.reported_at = self.store.clock.now()
        return True

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        node = self.store.nodes.get(node_id)
        if node is None or node.deregistered_at is not None:
            return None
        node.last_heartbeat_at = self.store.clock.now()
        node.reported_at = node.reported_at or node.last_heartbeat_at
        return node.last_heartbeat_at

    async def read_state(self, node_id: ids.NodeID) -> NodeState | None:
        node = self.store.nodes.get(node_id)
        if node is None or node.deregistered_at is not None:
            return None
        return NodeState(
            peers=_peers(self.store, node.project_id, node_id),
            last_heartbeat_at=node.last_heartbeat_at,
            changed_at=node.reported_at or node.registered_at,
            now=self.store.clock.now(),
        )


class _Registration:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def facts(self, request: RegistrationRequest) -> RegistrationFacts:
        row = _token(self._store, request.token_digest)
        if row is None:
            return RegistrationFacts(token=None)
        resource = self._store.resources[row.resource_id]
        domain_id = self._store.projects[row.project_id][1]
        token = TokenFacts(
            id=row.id,
            state=row.state(self._store.clock.now()),
            project_id=row.project_id,
            domain_id=domain_id,
            provisioned_resource_id=resource.id,
            resource_handle=resource.xr_name,
            deletion_requested=resource.deletion_requested_at is not None,
        )
        return RegistrationFacts(
            token=token,
            prior=self._prior(row),
            nonce_holder=self._store.nonces.get((row.project_id, request.nonce_digest)),
            key_in_use=any(
                node.public_key == request.public_key and node.resource_id != resource.id
                for node in self._live(domain_id)
            ),
            address_free=self._free_address(domain_id) is not None,
        )

    async def admit(self, request: RegistrationRequest, node: NewNode) -> MeshView:
        now = self._store.clock.now()
        token = node.token
        self._store.tokens[token.id].consumed_at = now
        for row in self._store.tokens.values():
            if row.resource_id == token.provisioned_resource_id and not row.spent:
                row.revoked_at = now
        for old in self._store.live_nodes(token.provisioned_resource_id):
            _leave(self._store, old)
        address = self._free_address(token.domain_id)
        if address is None:
            raise AllocationLostError
        stored = self._store.nodes[node.id] = NodeRow(
            id=node.id,
            project_id=token.project_id,
            domain_id=token.domain_id,
            resource_id=token.provisioned_resource_id,
            token_id=token.id,
            public_key=request.public_key,
            mesh_ip=address,
            nsk_digest=node.nsk_digest,
            registered_at=now,
        )
        self._store.nonces[(token.project_id, request.nonce_digest)] = token.id
        _tell(self._store, stored, "identity.NodeRegistered")
        return self._mesh(token, node.id)

    async def readmit(
        self, token: TokenFacts, node_id: ids.NodeID, *, nsk_digest: bytes, remote_address: str
    ) -> MeshView:
        node = self._store.nodes[node_id]
        entry = DeniedRegistration(
            code="readmitted",
            status=201,
            remote_address=remote_address,
            project_id=token.project_id,
            token_id=token.id,
            node_id=node_id,
        )
        self._store.denials.append(entry)
        node.other_nsk_digests = (*node.other_nsk_digests, node.nsk_digest)
        node.nsk_digest = nsk_digest
        node.readmitted += 1
        return self._mesh(token, node_id)

    async def record_denial(self, denial: DeniedRegistration) -> None:
        self._store.denials.append(denial)

    def _mesh(self, token: TokenFacts, node_id: ids.NodeID) -> MeshView:
        domain = next(row for row in self._store.domains.values() if row.id == token.domain_id)
        return MeshView(
            cidr=domain.mesh_cidr,
            signing_key_id=domain.signing_key_id,
            signing_public_key=domain.key.public,
            mesh_ip=self._store.nodes[node_id].mesh_ip,
            peers=_peers(self._store, token.project_id, node_id),
        )

    def _prior(self, row: TokenRow) -> PriorRegistration | None:
        for node in self._store.nodes.values():
            if node.token_id == row.id:
                nonce = next(key[1] for key, value in self._store.nonces.items() if value == row.id)
                return PriorRegistration(
                    node_id=node.id,
                    public_key=node.public_key,
                    nonce_digest=nonce,
                    reported=node.reported,
                    live=node.deregistered_at is None,
                    readmitted=node.readmitted,
                )
        return None

    def _free_address(self, domain_id: UUID) -> str | None:
        domain = next(row for row in self._store.domains.values() if row.id == domain_id)
        network = ipaddress.ip_network(domain.mesh_cidr)
        taken = {node.mesh_ip for node in self._live(domain_id)}
        rests = self._resting(domain_id, taken)
        for offset in range(1, min(network.num_addresses - 1, len(taken) + len(rests) + 2)):
            address = str(network[offset])
            if address not in taken and address not in rests:
                return address
        return min(rests, key=lambda address: rests[address], default=None)

    def _resting(self, domain_id: UUID, taken: set[str]) -> dict[str, datetime]:
        """Return the addresses that were given back lately, and when."""
        since = self._store.clock.now() - REST
        return {
            node.mesh_ip: node.deregistered_at
            for node in self._store.nodes.values()
            if node.domain_id == domain_id
            and node.mesh_ip not in taken
            and node.deregistered_at is not None
            and node.deregistered_at > since
        }

    def _live(self, domain_id: UUID) -> list[NodeRow]:
        return [
            node
            for node in self._store.nodes.values()
            if node.domain_id == domain_id and node.deregistered_at is None
        ]


def _token(store: MemoryStore, digest: bytes) -> TokenRow | None:
    return next((row for row in store.tokens.values() if row.digest == digest), None)


def _peers(store: MemoryStore, project_id: ids.ProjectID, node_id: ids.NodeID) -> Peers:
    return Peers.of(
        Peer(node_id=node.id, mesh_ip=node.mesh_ip, public_key=node.public_key)
        for node in sorted(store.nodes.values(), key=lambda node: node.id)
        if node.project_id == project_id and node.deregistered_at is None and node.id != node_id
    )


def _leave(store: MemoryStore, node: NodeRow) -> None:
    node.deregistered_at = store.clock.now()
    _tell(store, node, "identity.NodeDeregistered")


def _tell(store: MemoryStore, node: NodeRow, event_type: str) -> None:
    at = store.clock.now().isoformat().replace("+00:00", "Z")
    rows = store.node_events.setdefault(node.id, [])
    payload = {
        "EventID": str(uuid7()),
        "OccurredAt": at,
        "NodeID": str(node.id),
        "ProjectID": str(node.project_id),
        "DomainID": str(node.domain_id),
        "ProvisionedResourceID": str(node.resource_id),
        "BootstrapTokenID": str(node.token_id),
        "MeshIP": node.mesh_ip,
    }
    rows.append(StoredEvent(type=event_type, aggregate_sequence=len(rows) + 1, payload=payload))
