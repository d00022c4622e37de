"""Tokens, nodes and tenancy in memory."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.strategy import BootstrapState
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.domain.broker import ids
from reconciler.domain.broker.errors import InvalidInputError, StaleAggregateError
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.domain.identity import token as token_text
from reconciler.domain.identity.registration import (
    PriorRegistration,
    RegistrationFacts,
    TokenFacts,
)
from reconciler.domain.identity.registration_body import RegistrationRequest
from reconciler.ports.broker import IssuedToken, RegisteredNode
from reconciler.ports.identity import (
    DeniedRegistration,
    MeshView,
    NewNode,
    NodeCredential,
    Peer,
    ProjectRow,
    RegistrationTransaction,
    SecretSource,
)
from tests.fakes.memory import DomainRow, MemoryStore, NodeRow, TokenRow

PHASES = {"Pending", "Provisioning", "Ready", "Degraded", "Terminating", "Deleted"}


class InMemoryTokenIssuer:
    """Keeps the promises of `ports.broker.TokenIssuer`."""

    def __init__(self, store: MemoryStore, secrets: SecretSource | None = None) -> None:
        self.store = store
        self._secrets = secrets or SystemSecretSource(env="prod")

    async def issue(
        self, resource: ProvisionedResource, *, generation: int, ttl: timedelta
    ) -> IssuedToken:
        if not token_text.TTL_MIN <= ttl <= token_text.TTL_MAX:
            message = "cannot issue token: ttl must lie between 300 s and 24 h"
            raise InvalidInputError(message)
        stored = self.store.resources.get(resource.id)
        if stored is None or stored.deletion_requested_at is not None:
            message = "cannot issue token: the resource is gone or being deleted"
            raise StaleAggregateError(message)
        for row in self.store.tokens.values():
            if (row.resource_id, row.generation) == (resource.id, generation):
                message = f"cannot issue token: generation {generation} was issued before"
                raise StaleAggregateError(message)
        plaintext = self._secrets.token(resource.project_id)
        now = self.store.clock.now()
        row = TokenRow(
            id=ids.BootstrapTokenID(uuid7()),
            project_id=resource.project_id,
            resource_id=resource.id,
            generation=generation,
            digest=token_text.digest(plaintext),
            issued_at=now,
            expires_at=now + ttl,
        )
        self.store.tokens[row.id] = row
        return IssuedToken(
            id=row.id, generation=generation, plaintext=plaintext, expires_at=row.expires_at
        )

    async def extend(
        self,
        token: ids.BootstrapTokenID,
        *,
        ttl: timedelta,
        unless_left: timedelta | None = None,
    ) -> None:
        named = self.store.tokens.get(token)
        now = self.store.clock.now()
        for row in self.store.tokens.values():
            if named is None or row.resource_id != named.resource_id or row.spent:
                continue
            if unless_left is None or row.expires_at < now + unless_left:
                cap = row.issued_at + token_text.TTL_MAX
                row.expires_at = max(row.expires_at, min(now + ttl, cap))

    async def revoke(self, resource: ids.ProvisionedResourceID) -> None:
        for row in self.store.tokens.values():
            if row.resource_id == resource and not row.spent:
                row.revoked_at = self.store.clock.now()

    async def state(self, token: ids.BootstrapTokenID) -> BootstrapState:
        row = self.store.tokens.get(token)
        return BootstrapState.NONE if row is None else row.state(self.store.clock.now())


class InMemoryNodeDeregistrar:
    """Keeps the promises of `ports.broker.NodeDeregistrar`."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    async def deregister(self, token: ids.BootstrapTokenID) -> None:
        row = self.store.tokens.get(token)
        for node in () if row is None else self.store.live_nodes(row.resource_id):
            node.deregistered_at = self.store.clock.now()

    async def node_registered(self, token: ids.BootstrapTokenID) -> bool:
        return await self.find_node(token) is not None

    async def find_node(self, token: ids.BootstrapTokenID) -> RegisteredNode | None:
        row = self.store.tokens.get(token)
        for node in () if row is None else self.store.live_nodes(row.resource_id):
            return RegisteredNode(
                id=node.id, mesh_ip=node.mesh_ip, registered_at=node.registered_at
            )
        return None


class InMemoryTenancyRepository:
    """Keeps the promises of `ports.identity.TenancyRepository`."""

    def __init__(self, store: MemoryStore, secrets: SecretSource | None = None) -> None:
        self.store = store
        self._secrets = secrets or SystemSecretSource(env="prod")

    async def ensure_domain(self, name: str, mesh_cidr: str) -> UUID:
        try:
            wanted = str(ipaddress.ip_network(mesh_cidr))
        except ValueError as error:
            message = "cannot ensure domain: meshCIDR must be a network in CIDR form"
            raise InvalidInputError(message) from error
        row = self.store.domains.setdefault(
            name, DomainRow(id=uuid7(), mesh_cidr=wanted, key=self._secrets.signing_key())
        )
        if row.mesh_cidr != wanted:
            message = "cannot ensure domain: meshCIDR is immutable while the Domain exists"
            raise InvalidInputError(message)
        return row.id

    async def ensure_project(
        self, project_id: ids.ProjectID | None, name: str, domain: str
    ) -> ids.ProjectID:
        if domain not in self.store.domains:
            message = "cannot ensure project: domainRef.name refers to no Domain"
            raise InvalidInputError(message)
        domain_id = self.store.domains[domain].id
        stored = next((item for item in self.store.projects.values() if item[0].name == name), None)
        if stored is None:
            new_id = project_id or ids.ProjectID(uuid7())
            if new_id in self.store.projects:
                message = "cannot ensure project: id belongs to another Project"
                raise InvalidInputError(message)
            row = ProjectRow(id=new_id, name=name, namespace=names.project_namespace(new_id))
            stored = self.store.projects[new_id] = (row, domain_id)
        if project_id not in {None, stored[0].id} or stored[1] != domain_id:
            message = "cannot ensure project: id and domainRef are immutable"
            raise InvalidInputError(message)
        return stored[0].id

    async def find_project(self, name: str) -> ProjectRow | None:
        found = (row for row, _ in self.store.projects.values() if row.name == name)
        return next(found, None)

    async def ensure_cluster(self, slug: str, display_name: str) -> ids.ManagementClusterID:
        cluster_id = ids.management_cluster_id(slug)
        self.store.clusters.add(cluster_id)
        return cluster_id

    async def assign_project(
        self,
        project_id: ids.ProjectID,
        cluster_id: ids.ManagementClusterID,
        *,
        namespace: str,
        phase: str,
    ) -> None:
        known = project_id in self.store.projects and cluster_id in self.store.clusters
        if not known or phase not in PHASES:
            message = "cannot assign project: a reference or the phase is unknown"
            raise InvalidInputError(message)
        self.store.placements[project_id] = (cluster_id, namespace, phase)


class InMemoryEnrolmentStore:
    """Keeps the promises of `ports.identity.EnrolmentStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    @asynccontextmanager
    async def registration(self) -> AsyncIterator[RegistrationTransaction]:
        async with self.store.lock:
            before = copy.deepcopy((self.store.tokens, self.store.nodes, self.store.nonces))
            try:
                yield _Registration(self.store)
            except BaseException:
                self.store.tokens, self.store.nodes, self.store.nonces = before
                raise

    async def find_project(self, token_digest: bytes) -> ids.ProjectID | None:
        row = _token(self.store, token_digest)
        return None if row is None else row.project_id

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
        )

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        node = self.store.nodes.get(node_id)
        if node is None or node.deregistered_at is not None:
            return None
        node.last_heartbeat_at = self.store.clock.now()
        return node.last_heartbeat_at


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
            free_address=self._free_address(domain_id),
        )

    async def admit(self, request: RegistrationRequest, node: NewNode) -> None:
        now = self._store.clock.now()
        token = node.token
        self._store.tokens[token.id].consumed_at = now
        for row in self._store.tokens.values():
            if row.resource_id == token.provisioned_resource_id and not row.spent:
                row.revoked_at = now
        for old in self._store.live_nodes(token.provisioned_resource_id):
            old.deregistered_at = now
        self._store.nodes[node.id] = NodeRow(
            id=node.id,
            project_id=token.project_id,
            domain_id=token.domain_id,
            resource_id=token.provisioned_resource_id,
            token_id=token.id,
            public_key=request.public_key,
            mesh_ip=node.mesh_ip,
            nsk_digest=node.nsk_digest,
            registered_at=now,
        )
        self._store.nonces[(token.project_id, request.nonce_digest)] = token.id

    async def readmit(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> None:
        self._store.nodes[node_id].nsk_digest = nsk_digest

    async def mesh(self, domain_id: UUID, *, node_id: ids.NodeID) -> MeshView:
        domain = next(row for row in self._store.domains.values() if row.id == domain_id)
        peers = [
            Peer(node_id=node.id, mesh_ip=node.mesh_ip, public_key=node.public_key)
            for node in sorted(self._live(domain_id), key=lambda node: node.id)
            if node.id != node_id
        ]
        return MeshView(
            cidr=domain.mesh_cidr,
            signing_key_id=domain.signing_key_id,
            signing_public_key=domain.key.public,
            mesh_ip=self._store.nodes[node_id].mesh_ip,
            peers=tuple(peers),
        )

    def _prior(self, row: TokenRow) -> PriorRegistration | None:
        for node in self._store.nodes.values():
            if node.token_id == row.id:
                nonce = next(key[1] for key, value in self._store.nonces.items() if value == row.id)
                return PriorRegistration(
                    node_id=node.id,
                    public_key=node.public_key,
                    nonce_digest=nonce,
                    reported=node.last_heartbeat_at is not None,
                    live=node.deregistered_at is None,
                )
        return None

    def _free_address(self, domain_id: UUID) -> str | None:
        domain = next(row for row in self._store.domains.values() if row.id == domain_id)
        network = ipaddress.ip_network(domain.mesh_cidr)
        taken = {node.mesh_ip for node in self._live(domain_id)}
        for offset in range(1, min(network.num_addresses - 1, len(taken) + 2)):
            address = str(network[offset])
            if address not in taken:
                return address
        return None

    def _live(self, domain_id: UUID) -> list[NodeRow]:
        return [
            node
            for node in self._store.nodes.values()
            if node.domain_id == domain_id and node.deregistered_at is None
        ]


def _token(store: MemoryStore, digest: bytes) -> TokenRow | None:
    return next((row for row in store.tokens.values() if row.digest == digest), None)
