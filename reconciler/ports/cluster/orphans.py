"""The ports of the orphan sweep: what is marked in the cluster, and what the store knows of it.

What `app.housekeeping.orphan_sweep` and `broker orphans` call. None of them deletes
anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from reconciler.domain.teardown.orphans import MarkedObject, Orphan, Unrecorded

Kind = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundObjects:
    """An orphan that stands, and since when it is known, by the database's clock."""

    orphan: Orphan
    found_at: datetime


class MarkedObjects(Protocol):
    """The objects of one management cluster that carry the record label."""

    async def list_marked(self, kind: Kind) -> Sequence[MarkedObject]:
        """Return the marked objects of a kind, in every namespace; none where it is not served.

        Only their metadata are read, a page at a time.

        Raises:
            NotAllowedError: The broker may not list the kind.
        """
        ...


class OrphanReporter(Protocol):
    """Tells people at the object itself."""

    async def tell(self, orphan: Orphan) -> None:
        """Record an Event on what a finding is about; without such an object nothing is told.

        Idempotency: create-only, by a name that follows from the finding: as long as its Event
        is there it is not written again. A namespace that is going takes none, which is success.
        """
        ...


class OrphanLedger(Protocol):
    """The store's record of one management cluster's orphans."""

    async def kinds(self) -> Sequence[Kind]:
        """Return every kind that an aggregate ever had as its substrate or its sibling."""
        ...

    async def unprotected(self, marked: Sequence[MarkedObject]) -> Sequence[MarkedObject]:
        """Return those that no aggregate protects, Deleted ones not counted."""
        ...

    async def expected_records(self) -> Sequence[Unrecorded]:
        """Return where the record is of every aggregate whose deletion was not requested."""
        ...

    async def left_nodes(self) -> Sequence[Orphan]:
        """Return the nodes in the mesh whose resource is Deleted."""
        ...

    async def settle(self, found: Collection[Orphan]) -> Sequence[Orphan]:
        """Make what stands agree with what a sweep found.

        Returns:
            Those that stood not before.

        Idempotency: an equal set writes nothing.
        """
        ...
