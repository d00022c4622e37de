"""The port of retention: what is over leaves the store after a while.

What may leave, and how a batch of it went. Source: docs/operations/retention.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum, unique
from typing import Protocol
from uuid import UUID


@unique
class Remains(StrEnum):
    """The kinds of expired rows, in deletion order: a resource waits for those before it."""

    EVENTS = "events"
    TOKENS = "tokens"
    RESOURCES = "resources"
    ORPHANS = "orphans"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionBatch:
    """The rows that one transaction removed.

    Attributes:
        removed: Rows of the kind, without what went with them.
        last: From where to go on: the last row's id, or zero; None when the pass is over.
    """

    removed: int
    last: UUID | None


class RetentionStore(Protocol):
    """Removes what is over, a batch at a time."""

    async def remove(
        self, remains: Remains, *, keep: timedelta, after: UUID | None, limit: int
    ) -> RetentionBatch | None:
        """Remove rows of a kind that have been over for longer than `keep`, by id.

        What is over but still needed stays: a token of a live node or of its resource's
        newest generation, an event that was not published or not counted, a resource with a
        token, an event to publish or a sibling to settle, an orphan that stands.

        Args:
            remains: Which kind.
            keep: Judged by the database's clock.
            after: Only rows behind this id; None from the first.
            limit: Most rows of one transaction.

        Returns:
            None when another process is at it.

        Raises:
            StoreUnavailableError: The database cannot be reached.

        Idempotency: what was removed is not found again.
        """
        ...
