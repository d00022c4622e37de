"""The ports of the relay: where events wait, where they go, who counts.

What the relay calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from reconciler.domain.events.delivery import Delivery, DeliveryJudgement
from reconciler.domain.events.envelope import OutboxEvent


class OutboxError(Exception):
    """The outbox cannot be used now; the message names the cause's class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The size of the backlog.

    Attributes:
        waiting: Events that are not published, those behind a parked one included.
        parked: Events that wait for an operator.
        oldest: Age of the oldest that waits and is neither parked nor behind a parked one.
    """

    waiting: int
    parked: int
    oldest: timedelta


class EventBatch(Protocol):
    """Events that are this relay's alone until the batch is left."""

    @property
    def streams(self) -> Sequence[Sequence[OutboxEvent]]:
        """Return per aggregate the events that wait, in order and without a gap."""
        ...

    @property
    def now(self) -> datetime:
        """Return the database's time at the claim."""
        ...

    async def settle(self, judgement: DeliveryJudgement) -> None:
        """Store the outcome of the events; what is not named stays as it was.

        Raises:
            OutboxError: The store cannot be used; all of the batch is tried again.
        """
        ...


class Outbox(Protocol):
    """The queue of unpublished events, in the order of each aggregate."""

    def claim(self, *, streams: int, depth: int) -> AbstractAsyncContextManager[EventBatch]:
        """Claim what is next of some aggregates, the longest waiting first.

        Args:
            streams: Most aggregates.
            depth: Most events of each.

        Raises:
            OutboxError: The store cannot be used.

        Idempotency: nobody else gets a claimed aggregate's events; a process that dies
        frees its own.
        """
        ...

    async def tell_expired(self) -> int:
        """Write the events of what merely time brings about; return how many.

        Raises:
            OutboxError: The store cannot be used.
        """
        ...

    async def backlog(self) -> Backlog:
        """Return how much waits.

        Raises:
            OutboxError: The store cannot be used.
        """
        ...


class EventSink(Protocol):
    """The destination of events."""

    async def publish(self, event: OutboxEvent) -> Delivery:
        """Hand one event over and wait until it is taken.

        Whatever the sink does is a Delivery; nothing of it is raised. It takes some ten
        seconds at most.

        Idempotency: consumers dedupe by the event's id.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class RelayMeter(Protocol):
    """The metrics of the relay."""

    def published(self, event_type: str, lag_s: float) -> None:
        """Count an event that the sink took, so long after it happened."""
        ...

    def parked(self, event_type: str) -> None:
        """Count an event that was given up."""
        ...

    def failed(self, event_type: str) -> None:
        """Count an attempt that was not taken."""
        ...

    def backlog(self, backlog: Backlog) -> None:
        """Note how much waits."""
        ...
