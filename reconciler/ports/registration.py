"""The identity context's ports: minting, and what registration and nodes need.

What `app.registration.registration` and the token issuer call.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from function.contract.secrets import TokenPlaintext
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.peers import Peers
from reconciler.domain.identity.registration import RegistrationFacts, RepeatDetail, TokenFacts
from reconciler.domain.identity.registration_body import RegistrationBody, RegistrationRequest


class StoreUnavailableError(Exception):
    """The store cannot be reached now; trying again later helps."""


class AllocationLostError(Exception):
    """Somebody else was faster, or held the locks for too long; judging again helps."""


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
        nsk_digest: SHA-256 of its secret key; the key itself is never stored.
    """

    id: ids.NodeID
    token: TokenFacts
    nsk_digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshView:
    """The view of a Domain that a node receives.

    Attributes:
        cidr: The Domain's address range.
        signing_key_id: Names the key that signs the Domain's messages.
        signing_public_key: That key, 32 raw bytes.
        mesh_ip: The node's own address.
        peers: The other live nodes of its Project; who registers at the same moment may be
            missing, and shows in the next state.
    """

    cidr: str
    signing_key_id: str
    signing_public_key: bytes
    mesh_ip: str
    peers: Peers


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCredential:
    """The stored credential that a node's bearer is checked against.

    Attributes:
        nsk_digest: SHA-256 of its key.
        other_nsk_digests: SHA-256 of the keys before or beside it, at most as many as there are
            readmissions.
        deregistered: Whether it left the mesh.
        reported: Whether it ever made an authenticated call.
    """

    node_id: ids.NodeID
    nsk_digest: bytes
    deregistered: bool
    other_nsk_digests: tuple[bytes, ...] = ()
    reported: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """The state that a node pulls.

    Attributes:
        peers: The other live nodes of its Project.
        last_heartbeat_at: None before its first heartbeat.
        changed_at: When it first reported; before that, when it registered.
        now: The store's clock.
    """

    peers: Peers
    last_heartbeat_at: datetime | None
    changed_at: datetime
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedRegistration:
    """One entry of the audit, a denial or a readmission: ids and codes, never what was asked with.

    Attributes:
        project_id: The Project that the request named; None when it named none.
        token_id: The token it carried; None for one that is not stored.
        node_id: The node that the token registered before, if any.
        detail: What tells an honest repetition from a stolen token; None elsewhere.
    """

    code: str
    status: int
    remote_address: str
    project_id: ids.ProjectID | None = None
    token_id: ids.BootstrapTokenID | None = None
    node_id: ids.NodeID | None = None
    detail: RepeatDetail | None = None


class SecretSource(Protocol):
    """The cryptographic source of secrets."""

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


class RegistrationUnit(Protocol):
    """One registration: read, judge, then write all of it or nothing.

    Nothing is locked between reading and writing. A write that finds something else than
    what was judged changes nothing and says so; then the request is judged again.
    """

    async def facts(self, request: RegistrationRequest) -> RegistrationFacts:
        """Read what is stored about a request, by the store's clock.

        An unknown token costs the same statement as a known one.
        """
        ...

    async def admit(self, request: RegistrationRequest, node: NewNode) -> MeshView:
        """Consume the token, revoke its siblings, store node, nonce and event: one transaction.

        A node that an earlier generation of the same resource registered leaves the mesh:
        its substrate is gone, or no later generation would exist.

        Returns:
            What the node learns of its Domain, and the address it got.

        Raises:
            AllocationLostError: The token is no longer live, the resource's deletion was
                requested, nonce or key was taken, or no address was to be had meanwhile.
        """
        ...

    async def readmit(
        self, token: TokenFacts, node_id: ids.NodeID, *, nsk_digest: bytes, remote_address: str
    ) -> MeshView:
        """Replace the key of a node that never reported, and remember the former one.

        The same transaction audits it as `readmitted`, with node, token and address.

        Returns:
            What the node learns of its Domain.

        Raises:
            AllocationLostError: It reported or left meanwhile.
        """
        ...

    async def record_denial(self, denial: DeniedRegistration) -> None:
        """Append a denial to the audit."""
        ...


class EnrolmentStore(Protocol):
    """The durable side of enrolment."""

    def registration(self) -> AbstractAsyncContextManager[RegistrationUnit]:
        """Open one registration.

        Raises:
            StoreUnavailableError: The store cannot be reached.
            AllocationLostError: As its methods.
        """
        ...

    async def record_denial(self, denial: DeniedRegistration) -> None:
        """Append a denial outside a registration."""
        ...

    async def find_credential(self, node_id: ids.NodeID) -> NodeCredential | None:
        """Return what a node's bearer is checked against, or None for an unknown node."""
        ...

    async def record_report(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> bool:
        """Note a node's first authenticated call, and make its key the only one.

        Returns:
            False, and nothing was changed, when it reported before, left, or has other keys now.
        """
        ...

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        """Note that a node is alive; it has reported then.

        Returns:
            When, by the store's clock; None when the node left the mesh meanwhile.
        """
        ...

    async def read_state(self, node_id: ids.NodeID) -> NodeState | None:
        """Return what a node pulls; None when it left the mesh meanwhile."""
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
    """The service behind the node listener."""

    async def register(self, body: RegistrationBody, *, remote_address: str) -> Registered | Denial:
        """Register a node; a denial had no effect but its line in the audit."""
        ...

    async def authenticate(
        self, credential: str | None, *, path_node: ids.NodeID | None = None, any_node: bool = False
    ) -> ids.NodeID | Denial:
        """Return the node that a bearer proves, or why it proves none.

        Args:
            credential: The bearer's text; None when the request has none.
            path_node: The node that the path names; None for what is no UUID.
            any_node: The path names no node: every live one may ask.
        """
        ...

    async def heartbeat(self, node_id: ids.NodeID, body: HeartbeatBody) -> datetime | Denial:
        """Note that an authenticated node is alive; when, by the store's clock."""
        ...

    async def state(self, node_id: ids.NodeID) -> NodeState | Denial:
        """Return what an authenticated node pulls."""
        ...


class Budget(Protocol):
    """A rate limit per key."""

    def take(self, key: str) -> int | None:
        """Spend one from a key's budget.

        Returns:
            None when it was there; else the whole seconds after which it will be.
        """
        ...
