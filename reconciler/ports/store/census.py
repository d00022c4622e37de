"""The port of counting: what the controller must know of all aggregates without reading any whole.

Counts, and aggregates as a sweep sees them. Every call costs an index, whatever the number
of aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ResourceKey

PAGE: Final = 500
"""Aggregates of one page: a few milliseconds of the loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEntry:
    """One aggregate as a sweep sees it.

    Attributes:
        created_at: With its id its place among the others.
        credential: The CloudCredential it uses; None without one.
        asked: Its deletion was requested.
        version: Counts its row's changes.
        expects_node: A node is to register for it.
        node: Its live node; None without one.
    """

    id: ids.ProvisionedResourceID
    created_at: datetime
    namespace: str
    record: str
    credential: str | None
    asked: bool
    version: int
    expects_node: bool
    node: ids.NodeID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialUse:
    """A credential that aggregates of a namespace use.

    Attributes:
        enrolled: Used by resources whose author brings the ProviderConfig.
    """

    credential: str
    enrolled: bool


class Census(Protocol):
    """Counts of the aggregates that are not Deleted; a namespace is one management cluster's."""

    async def count_in_namespace(self, namespace: str) -> int:
        """Return how many aggregates of a namespace are not Deleted."""
        ...

    async def credential_uses(self, namespace: str) -> Sequence[CredentialUse]:
        """Return each credential in use in a namespace once, and once per kind of use."""
        ...

    async def sightings(
        self, cluster: ids.ManagementClusterID, *, after: RecordEntry | None = None
    ) -> Sequence[RecordEntry]:
        """Return the next PAGE of a cluster's aggregates that are not Deleted, oldest first."""
        ...

    async def sightings_of(
        self, cluster: ids.ManagementClusterID, *, namespace: str, record: str
    ) -> Sequence[RecordEntry]:
        """Return those whose record has a name, oldest first."""
        ...

    async def unsettled(
        self, cluster: ids.ManagementClusterID, *, namespace: str = "", record: str = ""
    ) -> Sequence[ids.ProvisionedResourceID]:
        """Return Deleted aggregates with a sibling that is not settled, at most PAGE, oldest first.

        Args:
            cluster: Whose.
            namespace: Only there; empty for everywhere.
            record: Only of that name; empty for any.
        """
        ...

    async def emptied(self, cluster: ids.ManagementClusterID) -> Sequence[str]:
        """Return the namespaces in which all aggregates of a cluster are Deleted, in order."""
        ...


class Placements(Protocol):
    """Finds the management cluster of an aggregate, among those that share a database."""

    async def elsewhere_by_record(self, uids: Sequence[str]) -> str | None:
        """Return where else one of these records is at home, whatever this cluster knows of it.

        A uid is one API server's: a hit means that its records were accepted under another name.

        Returns:
            The slug of another management cluster that has an aggregate of one of them which is
            not Deleted, the first of several; None without any.
        """
        ...

    async def elsewhere_by_key(self, key: ResourceKey) -> str | None:
        """Return the slug of another management cluster that has a key's live one, or None."""
        ...


class StoreState(Protocol):
    """Store-wide questions of the controller."""

    async def prove_writable(self) -> None:
        """Go through a write that changes nothing.

        Raises:
            StoreUnavailableError: The store takes none now.
        """
        ...

    async def thawed(self, cluster: ids.ManagementClusterID, *, within: timedelta) -> bool:
        """Tell whether an operator declared a cluster's state true within that time."""
        ...
