"""The identity context's ports: tenancy, minting, and the registration's transaction.

Belongs here: what `app.enrolment` and the token issuer call. Not here: what the broker
asks of tokens and nodes (`ports.broker`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from function.contract.secrets import TokenPlaintext
from reconciler.domain.broker import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.registration import RegistrationFacts, TokenFacts
from reconciler.domain.identity.registration_body import RegistrationBody, RegistrationRequest


class StoreUnavailableError(Exception):
    """The store cannot be reached now; trying again later helps."""


class AllocationLostError(Exception):
    """Somebody else took the address, or held the locks for too long; try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """An Ed25519 pair as raw bytes, 32 each."""

    private: bytes = field(repr=False)
    public: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node that is about to exist.

    Attributes:
        id: UUIDv7.
        token: The token it consumes, as judged.
        mesh_ip: The address it gets, as judged.
        nsk_digest: SHA-256 of its secret key; the key itself is never stored.
    """

    id: ids.NodeID
    token: TokenFacts
    mesh_ip: str
    nsk_digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A live node of a Domain, as its peers see it."""

    node_id: ids.NodeID
    mesh_ip: str
    public_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshView:
    """What a node learns of its Domain.

    Attributes:
        cidr: The Domain's address range.
        signing_key_id: Names the key that signs the Domain's messages.
        signing_public_key: That key, 32 raw bytes.
        mesh_ip: The node's own address.
        peers: Every other live node, in the order of their ids.
    """

    cidr: str
    signing_key_id: str
    signing_public_key: bytes
    mesh_ip: str
    peers: tuple[Peer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCredential:
    """What a node's bearer is checked against."""

    node_id: ids.NodeID
    nsk_digest: bytes
    deregistered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """A Project as it is stored."""

    id: ids.ProjectID
    name: str
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedRegistration:
    """One denial for the audit: ids and a code, never a value of the request."""

    code: str
    status: int
    remote_address: str
    project_id: ids.ProjectID | None = None
    token_id: ids.BootstrapTokenID | None = None


class SecretSource(Protocol):
    """Where secrets come from: a cryptographic source."""

    def token(self, project_id: ids.ProjectID) -> TokenPlaintext:
        """Mint the text of a bootstrap token for a Project."""
        ...

    @property
    def env(self) -> str:
        """The environment segment of the tokens it mints."""
        ...

    def node_secret(self) -> bytes:
        """Mint a node secret key of 32 bytes."""
        ...

    def signing_key(self) -> SigningKey:
        """Mint a Domain's Ed25519 pair."""
        ...


class RegistrationTransaction(Protocol):
    """One registration; everything in it commits together or not at all."""

    async def facts(self, request: RegistrationRequest) -> RegistrationFacts:
        """Read what is stored about a request, and lock it until the end.

        Locks in this order: the resource, the token, the Domain. So two registrations of
        one resource, or a registration and an accepted deletion, never interleave.

        Raises:
            AllocationLostError: A lock was not had in time.
        """
        ...

    async def admit(self, request: RegistrationRequest, node: NewNode) -> None:
        """Consume the token, revoke its siblings, and store node and nonce.

        A node that an earlier generation of the same resource registered leaves the mesh:
        its substrate is gone, or no later generation would exist.

        Raises:
            AllocationLostError: The address was taken meanwhile.
        """
        ...

    async def readmit(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> None:
        """Replace the key of a node that never reported."""
        ...

    async def mesh(self, domain_id: UUID, *, node_id: ids.NodeID) -> MeshView:
        """Return what a node of this transaction learns of its Domain."""
        ...


class EnrolmentStore(Protocol):
    """The durable side of enrolment."""

    def registration(self) -> AbstractAsyncContextManager[RegistrationTransaction]:
        """Open one transaction; it commits at a clean end and rolls back on an error.

        Raises:
            StoreUnavailableError: The store cannot be reached.
        """
        ...

    async def find_project(self, token_digest: bytes) -> ids.ProjectID | None:
        """Return the Project that a token was minted for, or None for an unknown token."""
        ...

    async def record_denial(self, denial: DeniedRegistration) -> None:
        """Append a denial to the audit."""
        ...

    async def find_credential(self, node_id: ids.NodeID) -> NodeCredential | None:
        """Return what a node's bearer is checked against, or None for an unknown node."""
        ...

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        """Note that a node is alive.

        Returns:
            When, by the store's clock; None when the node left the mesh meanwhile.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A node that is in the mesh, as its reply tells it.

    Attributes:
        node_id: Its id.
        nsk: Its secret key, 32 bytes; exists on the way to the reply alone.
        mesh: What it learns of its Domain.
    """

    node_id: ids.NodeID
    nsk: bytes = field(repr=False)
    mesh: MeshView


class NodeService(Protocol):
    """What the node listener answers with."""

    async def register(self, body: RegistrationBody, *, remote_address: str) -> Registered | Denial:
        """Register a node; a denial had no effect but its line in the audit."""
        ...

    async def authenticate(
        self, credential: str | None, *, path_node: ids.NodeID | None
    ) -> ids.NodeID | Denial:
        """Return the node that a bearer proves, or why it proves none."""
        ...

    async def heartbeat(self, node_id: ids.NodeID, body: HeartbeatBody) -> datetime | Denial:
        """Note that an authenticated node is alive; when, by the store's clock."""
        ...


class Budget(Protocol):
    """How often something may happen, per key."""

    def take(self, key: str) -> int | None:
        """Spend one from a key's budget.

        Returns:
            None when it was there; else the whole seconds after which it will be.
        """
        ...


class TenancyRepository(Protocol):
    """Domains, Projects, clusters and who is placed where."""

    async def ensure_domain(self, name: str, mesh_cidr: str) -> UUID:
        """Return a Domain's id; its first call mints id and signing key.

        Raises:
            InvalidInputError: The Domain exists with another range; nodes live in it.

        Idempotency: a second call mints nothing.
        """
        ...

    async def ensure_project(
        self, project_id: ids.ProjectID | None, name: str, domain: str
    ) -> ids.ProjectID:
        """Return a Project's id; its first call stores the given one or mints one.

        Raises:
            InvalidInputError: No such Domain; or the Project, its id or its name exists
                with another id, name or Domain.

        Idempotency: a second call mints nothing.
        """
        ...

    async def find_project(self, name: str) -> ProjectRow | None:
        """Return a Project by name, or None."""
        ...

    async def ensure_cluster(self, slug: str, display_name: str) -> ids.ManagementClusterID:
        """Return a cluster's id, which its slug determines; store it the first time."""
        ...

    async def assign_project(
        self,
        project_id: ids.ProjectID,
        cluster_id: ids.ManagementClusterID,
        *,
        namespace: str,
        phase: str,
    ) -> None:
        """Store where a Project lives and its namespace's phase.

        Raises:
            InvalidInputError: No such Project or cluster, or an unknown phase.

        Idempotency: the last call stands.
        """
        ...
