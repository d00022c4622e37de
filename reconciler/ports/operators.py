"""The ports of the operators' listener: authorization, and what is read there.

Who is asked for a verdict, and the rows that operators read. `adapters.http` calls it;
nothing of it holds a token's text or digest. Source: contracts §3.4 and §3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

from pydantic import SecretStr

from reconciler.domain.aggregate import ids


class ReviewVerdict(StrEnum):
    """The reviewer's verdict on a request."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    UNAUTHENTICATED = "unauthenticated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """A verdict, and whose it is; the name is empty when nobody was recognised."""

    verdict: ReviewVerdict
    user: str = ""


class ReviewUnavailableError(Exception):
    """Nobody can say now who somebody is or what they may; nothing is allowed."""


class Reviewer(Protocol):
    """Knows who holds a credential, and what they may."""

    async def review(self, credential: SecretStr, *, verb: str, path: str) -> ReviewResult:
        """Judge one request.

        Args:
            credential: What the bearer header carries.
            verb: The HTTP method in lower case.
            path: What is asked for, without a query.

        Raises:
            ReviewUnavailableError: There is no verdict now.

        Idempotency: asks only; a verdict may be some seconds old.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The placement of a Project."""

    project_id: UUID
    management_cluster_id: UUID
    region: str | None
    namespace_name: str
    namespace_phase: str
    assigned_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMetadata:
    """All that is ever told of a bootstrap token.

    Attributes:
        resource_id: The one resource that it may enrol.
        generation: Its number among that resource's tokens, from 1.
        consumed_at: None while nobody registered with it.
        revoked_at: None while it was not revoked.
    """

    id: UUID
    project_id: UUID
    resource_id: UUID
    generation: int
    kind: str
    env_prefix: str
    issued_at: datetime
    expires_at: datetime
    consumed_at: datetime | None
    revoked_at: datetime | None


REASON_MAX: Final = 512
"""Longest reason in characters: a sentence and a ticket."""


class TokenRevocation(StrEnum):
    """The outcome of an operator's request to revoke one token."""

    REVOKED = "revoked"
    SPENT = "spent"
    """It was consumed or revoked before."""
    ABSENT = "absent"
    """The Project has no such token."""


class NodeDeregistration(StrEnum):
    """The outcome of an operator's request to deregister one node."""

    OUT = "out"
    GONE = "gone"
    """It was out before."""
    ALIVE = "alive"
    """Its resource is neither Deleted nor given up: a teardown takes it out, in order."""
    ABSENT = "absent"
    """The Project has no such node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedID:
    """The object behind an id, by the names that users gave.

    Attributes:
        kind: ProvisionedResource, Resource, Node or BootstrapToken, of one aggregate, which the
            fields after `name` tell of; or what many share: Project, Domain, BlueprintVersion,
            CloudCredential or ManagementCluster, which has a name and nothing after it.
        name: Of what is shared: its object's name, a cluster's slug, empty for the blueprint or
            credential of a resource that was enrolled without; None for an aggregate's.
        provisioned_resource_id: The aggregate that it belongs to, the newest of a Resource.
        record: Its ProvisioningRecord.
        xr_group, xr_kind, xr_name: Its composite resource, in `namespace`.
        resource: Its name in the Composition.
        blueprint, cloud_credential: None where it was enrolled without.
        management_cluster: The slug of the cluster it lives on.
        node_id, mesh_ip: Its live node; None without one.
    """

    kind: str
    id: UUID
    project_id: UUID
    project: str
    name: str | None = None
    provisioned_resource_id: UUID | None = None
    namespace: str | None = None
    record: str | None = None
    xr_group: str | None = None
    xr_kind: str | None = None
    xr_name: str | None = None
    resource: str | None = None
    blueprint: str | None = None
    cloud_credential: str | None = None
    management_cluster: str | None = None
    phase: str | None = None
    node_id: UUID | None = None
    mesh_ip: str | None = None


class OperatorStore(Protocol):
    """The operators' reads, and the two changes that they may make."""

    async def named(self, project: ids.ProjectID, wanted: UUID) -> NamedID | None:
        """Return what an id of a Project stands for; None where it stands for nothing there."""
        ...

    async def deregister(
        self, project: ids.ProjectID, node: ids.NodeID, *, by: str, reason: str
    ) -> NodeDeregistration:
        """Take a node out of the mesh that its resource left behind, audited in the same change.

        Its mesh address is free again after its rest. A node whose resource is alive stays: its
        machine would be cut off, and its teardown takes it out before the machine goes.

        Args:
            project: Whose.
            node: Which.
            by: The user's name, as the reviewer gave it.
            reason: Why, one printable line of at most REASON_MAX characters.

        Idempotency: one that is out is told so, and nothing is written.
        """
        ...

    async def assignment(self, project: ids.ProjectID) -> Assignment | None:
        """Return where a Project lives; None when it was never placed."""
        ...

    async def tokens(
        self, project: ids.ProjectID, *, after: ids.BootstrapTokenID | None, limit: int
    ) -> Sequence[TokenMetadata]:
        """Return a Project's tokens by id, which is the order of their issue.

        Args:
            project: Whose.
            after: The last one of the page before; None for the first page.
            limit: Most tokens to return, from 1.
        """
        ...

    async def token(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID
    ) -> TokenMetadata | None:
        """Return one of a Project's tokens, or None."""
        ...

    async def revoke(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID, *, by: str
    ) -> TokenRevocation:
        """Revoke one of a Project's tokens, and audit it in the same transaction.

        Other generations of its resource stay.

        Args:
            project: Whose.
            token: Which.
            by: The user's name, as the reviewer gave it.

        Idempotency: a second call is told that it is spent.
        """
        ...
