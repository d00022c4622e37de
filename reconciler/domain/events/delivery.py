"""The table of delivery: published, retried, parked, or the sink is down.

The table of delivery, which knows no sink.

A failure is counted against an event only when the sink took another one in the same batch.
Otherwise nobody can tell a poisonous event from a sink that is away, and an outage, or one wrong
setting that makes the sink call every event wrong, must park nothing. What was tried steps aside
then, unblamed, so that other aggregates are tried before it is again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto, unique
from typing import Final
from uuid import UUID

ATTEMPTS_MAX: Final = 12
"""Counted failures after which an event is parked: some 24 minutes of its own."""
RETRY_FIRST: Final = timedelta(seconds=1)
RETRY_MAX: Final = timedelta(minutes=5)
SINK_PAUSE_MAX_S: Final = 15.0
"""Longest pause while the sink takes nothing, unless what is tried next rings."""
ASIDE_PAUSES: Final = 2
"""Pauses that an event steps aside for: another probe is made meanwhile, and after an outage no
event is later than half a minute and a pause."""
ERROR_MAX: Final = 256
"""Characters of an error that are kept."""


@unique
class DeliveryOutcome(Enum):
    """The sink's response to one event."""

    DELIVERED = auto()
    REFUSED = auto()
    """It will never take this one, unless a setting of ours makes it say so of all."""
    FAILED = auto()
    """It did not take it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The result of one attempt; `error` is a class or a status, never a body."""

    outcome: DeliveryOutcome
    error: str = ""


DELIVERED: Final = Delivery(outcome=DeliveryOutcome.DELIVERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One event that was tried, with its counted failures before."""

    event_id: UUID
    attempts: int
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """The stored state of an event that was not delivered.

    Attributes:
        attempts: Its counted failures now.
        retry_in: When it is tried again; None parks it.
    """

    event_id: UUID
    attempts: int
    retry_in: timedelta | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryJudgement:
    """The stored state of a batch.

    Attributes:
        sink_down: Something was tried and nothing taken.
    """

    published: tuple[UUID, ...]
    setbacks: tuple[Setback, ...]
    sink_down: bool


def judge(attempts: Sequence[Attempt], *, failures: int = 0) -> DeliveryJudgement:
    """Decide about a batch of attempts.

    Args:
        attempts: The batch.
        failures: Batches in a row, just before, of which the sink took nothing.
    """
    published = tuple(
        item.event_id for item in attempts if item.delivery.outcome is DeliveryOutcome.DELIVERED
    )
    rest = [item for item in attempts if item.delivery.outcome is not DeliveryOutcome.DELIVERED]
    # The only one that waits is believed once: the next tells whether it was a setting.
    if published or (len(rest) == 1 and not failures and _is_refused(rest[0])):
        setbacks = [_blamed(item) for item in rest]
    else:
        aside = timedelta(seconds=ASIDE_PAUSES * sink_pause_s(failures + 1))
        setbacks = [_set_aside(item, aside) for item in rest]
    down = bool(rest) and not published
    return DeliveryJudgement(published=published, setbacks=tuple(setbacks), sink_down=down)


def sink_pause_s(failures: int) -> float:
    """Return how long to leave a sink alone that took nothing so many times in a row."""
    return float(min(2.0 ** min(max(failures, 1) - 1, 10), SINK_PAUSE_MAX_S))


def _is_refused(item: Attempt) -> bool:
    return item.delivery.outcome is DeliveryOutcome.REFUSED


def _blamed(item: Attempt) -> Setback:
    attempts = item.attempts + 1
    retry_in = None
    if attempts < ATTEMPTS_MAX and not _is_refused(item):
        retry_in = min(RETRY_FIRST * 2 ** (attempts - 1), RETRY_MAX)
    return Setback(event_id=item.event_id, attempts=attempts, retry_in=retry_in, error=_error(item))


def _set_aside(item: Attempt, aside: timedelta) -> Setback:
    return Setback(
        event_id=item.event_id, attempts=item.attempts, retry_in=aside, error=_error(item)
    )


def _error(item: Attempt) -> str:
    return item.delivery.error[:ERROR_MAX] or "unknown"
