"""The broker's ports: its repository, tokens, nodes.

What `app.broker_*` calls. Source: seed 000 "Ports", seed 001 "Ports".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from function.contract.secrets import TokenPlaintext
from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource, ResourceKey
from reconciler.domain.events.audit import AuditEntry
from reconciler.domain.events.lifecycle import LifecycleEvent
from reconciler.domain.identity.token_life import TokenLife
from reconciler.domain.protection.shared_hold import SharedHold
from reconciler.ports.store.census import Census, Placements, StoreState

LOOSE_MAX: Final = 500
"""Credentials whose loose holds one sweep settles, some calls each; the next has the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnToken:
    """The text of a token of one generation; it opens nothing until it is issued."""

    generation: int
    plaintext: TokenPlaintext


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken(DrawnToken):
    """A freshly minted token; it and its draft alone ever carry its plaintext."""

    id: ids.BootstrapTokenID
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredNode:
    """A node that registered for a resource and was not deregistered.

    Attributes:
        registered_at: By the database's clock.
        age: How long ago that was by the same clock, which need not be ours.
        reported: It made an authenticated call since, so that it holds its credential.
    """

    id: ids.NodeID
    mesh_ip: str
    registered_at: datetime
    age: timedelta
    reported: bool


class BrokerRepository(Census, Placements, StoreState, Protocol):
    """The durable record of one management cluster's aggregates; state and event commit together.

    Clusters may share a database: what is looked for by key, record or namespace is this one's.
    """

    async def create(self, resource: ProvisionedResource) -> ProvisionedResource:
        """Store a new aggregate with its Requested event, in one transaction.

        Raises:
            ProtectedElsewhereError: Another one that is not Deleted protects what it is to
                protect. Of two that come at once, one is stored.
            AssignmentNotFoundError: Its Project or cluster is not stored.
            LivesElsewhereError: Another cluster has a live one with its key.

        Idempotency: when a live aggregate with the same key exists, that one is returned
        and nothing is written.
        """
        ...

    async def get(self, resource_id: ids.ProvisionedResourceID) -> ProvisionedResource:
        """Return one aggregate, in any phase.

        Raises:
            ProvisionedResourceNotFoundError: No row has this id.
        """
        ...

    async def provisioning_for(self, resource_id: ids.ProvisionedResourceID) -> timedelta | None:
        """Return for how long a substrate has been due, by the store's clock.

        None where none is, and where no row has this id.
        """
        ...

    async def find_live(self, key: ResourceKey) -> ProvisionedResource | None:
        """Return the aggregate of a key whose deletion was not requested, or None."""
        ...

    async def find_by_record(self, uid: str) -> ProvisionedResource | None:
        """Return the newest aggregate that a record object speaks for, or None."""
        ...

    async def list_in_namespace(self, namespace: str) -> Sequence[ProvisionedResource]:
        """Return every aggregate of a namespace that is not Deleted, oldest first."""
        ...

    async def update(
        self,
        resource: ProvisionedResource,
        *,
        event: LifecycleEvent | None = None,
        audit: AuditEntry | None = None,
    ) -> ProvisionedResource:
        """Store a change, its event and its audit entry, in one transaction.

        Writes phase, record, accepted, protected, children, token id, generation, what is known
        of rendering, enrolling and recreating, and updated_at; never `deletion_requested_at`, so a
        committed deletion request is never lost, and `force_released_at` only once. Of a
        `provisioning_since` that is new the store takes its own time.

        The answer has the new version.

        Raises:
            StaleAggregateError: The row's version is not the one that was read.
            ProvisionedResourceNotFoundError: No row has this id.
            ProtectedElsewhereError: Another one protects what this one did not so far.

        Idempotency: an event is stored once per (aggregate, type, generation), a
        `force-release` entry once per aggregate; any other entry as often as a change that
        carries it succeeds, which for one read version is once.
        """
        ...

    async def record_deletion_intent(self, resource: ProvisionedResource) -> ProvisionedResource:
        """Commit an accepted deletion request with its Deleting event (seed 001).

        The resource's unspent tokens are revoked in the same transaction: from then on no
        machine registers with one, and all are told the same.

        Idempotency: a row that already carries `deletion_requested_at` is returned as it
        is stored, and no second event is written.

        Raises:
            ProvisionedResourceNotFoundError: No row has this id.
        """
        ...


class HoldLedger(Protocol):
    """The objects that one management cluster holds for credentials."""

    async def remember(self, hold: SharedHold) -> None:
        """Store what is about to be held.

        Raises:
            AssignmentNotFoundError: The management cluster is not stored.

        Idempotency: stored once, and written again only while somebody is releasing it:
        that mark is taken off and its revision counted, so that it is not forgotten.
        """
        ...

    async def loosen(self, hold: SharedHold) -> SharedHold | None:
        """Mark what is about to be released, as it was read; count its revision.

        Returns:
            It with the new revision, for `forget`; None when it is gone or was written since.
        """
        ...

    async def list_in_namespace(self, namespace: str) -> Sequence[SharedHold]:
        """Return what is held in a namespace, in a fixed order."""
        ...

    async def forget(self, hold: SharedHold) -> None:
        """Delete what is no longer held. Idempotency: one that is gone is success.

        Only one that is marked, and was not remembered again since, is deleted.
        """
        ...

    async def list_loose(self) -> Sequence[tuple[str, str]]:
        """Return namespace and credential of holds whose credential nobody uses there.

        At most LOOSE_MAX pairs, oldest first. Only an aggregate that is not Deleted uses one.
        """
        ...


GENERATIONS_MAX: Final = 64
"""Generations of a resource that are looked at: at one per 30 s, those of half an hour."""


class TokenIssuer(Protocol):
    """The seam to the identity context's bootstrap tokens (seed 000 "Ports").

    `revoke` and `state`, which a teardown needs, raise what `NodeDeregistrar` raises and
    nothing else.
    """

    async def draw(self, resource: ProvisionedResource, *, generation: int) -> DrawnToken:
        """Draw the text of a token; nothing is stored, so that nobody can register with it."""
        ...

    async def issue(
        self, resource: ProvisionedResource, drawn: DrawnToken, *, ttl: timedelta
    ) -> IssuedToken:
        """Let a drawn text register one node of one resource; stored as a hash.

        Earlier generations whose window has closed are revoked with it: no renewal opens
        them again for a machine that vanished.

        Raises:
            StaleAggregateError: This generation was issued before, the resource's deletion
                was requested, or a node of it is in the mesh.
            InvalidInputError: The window lies outside 300 s to 24 h.

        Idempotency: none; the caller claims the generation by the aggregate's version
        before it issues.
        """
        ...

    async def extend(
        self,
        token: ids.BootstrapTokenID,
        *,
        ttl: timedelta,
        unless_left: timedelta | None = None,
    ) -> None:
        """Restart the window of every unspent token of a token's resource.

        An earlier generation may be the one that a machine carries.

        Args:
            token: Names the resource; an unknown one changes nothing.
            ttl: The window from now, up to 24 h after a token's issue; never shortened.
            unless_left: Leave a window alone of which more than this is left.
        """
        ...

    async def revoke(self, resource: ids.ProvisionedResourceID) -> None:
        """Revoke every live token of a resource. Idempotency: spent ones stay as they are."""
        ...

    async def state(self, token: ids.BootstrapTokenID) -> BootstrapState:
        """Return a token's state by the database's clock; None state for an unknown id."""
        ...

    async def life(self, resource: ids.ProvisionedResourceID) -> TokenLife:
        """Return a resource's tokens by the database's clock, the last `GENERATIONS_MAX`."""
        ...


class MeshRefusedError(Exception):
    """The identity side answered with a refusal; nothing was changed.

    Attributes:
        rule: The stored field and what it must be, never its value; empty where none is known.
    """

    def __init__(self, message: str = "", *, rule: str = "") -> None:
        self.rule = rule
        super().__init__(message)


class NodeDeregistrar(Protocol):
    """The seam to the mesh (seed 001), keyed by the broker's own durable handle.

    Every call may raise:
        MeshRefusedError: The store refuses it, by a rule of its own or by one of a row.
        AllocationLostError: Another transaction holds the node.
        StoreUnavailableError: The store cannot be reached now.
    """

    async def deregister(self, token: ids.BootstrapTokenID) -> None:
        """Take the node of a token's resource out of the mesh.

        Idempotency: an already deregistered or never registered node is success.
        """
        ...

    async def reclaim(self, token: ids.BootstrapTokenID) -> bool:
        """Take the node of a token's resource out if it never reported; tell whether this did.

        Idempotency: one that reported stays; one that is out, or never came, is success.
        """
        ...

    async def node_registered(self, token: ids.BootstrapTokenID) -> bool:
        """Tell whether a node of a token's resource is live in the mesh."""
        ...

    async def find_node(self, token: ids.BootstrapTokenID) -> RegisteredNode | None:
        """Return the live node of a token's resource, or None."""
        ...
