"""The table of the circuit breaker: which evidence opens it, and when it closes.

Which facts make it doubtful, and when it is trusted again. Pure: times are seconds of any
monotonic clock. Source: design §2 "A lost cluster".
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import Final

FEW: Final = 3
"""Records that may be gone, or substrates lost, at once: what an operator does by hand."""

PART: Final = 0.02
"""Or this part of all of them, where there are many."""

SHRINK_PART: Final = 0.1
"""The part of a kind that a new list may lack; more is a cluster restored from a backup."""

ANSWERS_MIN: Final = 20
"""Answers of the API server below which their failures prove nothing."""

FAILURES_PART: Final = 0.5
"""The part of its answers that may be failures."""

SILENCE_S: Final = 120.0
"""How old a cache may be: two bookmarks."""

CALM_S: Final = 60.0
"""How long the facts must be normal before they are believed again."""


@unique
class BreakerCause(StrEnum):
    """The cause of a freeze; the log, /metrics and docs/operations/freeze.md name these."""

    RECORDS_VANISHED = "RecordsVanished"
    SUBSTRATES_LOST = "SubstratesLost"
    LIST_SHRANK = "ListShrank"
    WENT_BACK = "WentBack"
    API_SERVER_FAILS = "APIServerFails"
    CACHE_STALE = "CacheStale"
    STORE_UNREACHABLE = "StoreUnreachable"


ACCEPTABLE: Final = frozenset(
    {
        BreakerCause.RECORDS_VANISHED,
        BreakerCause.SUBSTRATES_LOST,
        BreakerCause.LIST_SHRANK,
        BreakerCause.WENT_BACK,
    }
)
"""What an operator can declare true by `broker thaw`; the others end by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerFacts:
    """The current evidence about one management cluster.

    Attributes:
        aggregates: How many are not Deleted.
        missing: Those whose record is gone although nobody asked for their deletion, and
            those that were given up for it within the last minute.
        lost: Substrates that were lost under a live node within the last minute.
        doubts: What the caches reported within the last minute.
        answers: Answers of the API server within half a minute, failures included.
        failures: Those with a status of 500 or more, and calls without an answer.
        silent_s: How long the most silent cache heard nothing.
        store: Postgres answers.
        accepted: An operator declared the facts true.
    """

    aggregates: int = 0
    missing: int = 0
    lost: int = 0
    doubts: AbstractSet[BreakerCause] = frozenset()
    answers: int = 0
    failures: int = 0
    silent_s: float = 0.0
    store: bool = True
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerMode:
    """The state of the circuit breaker of one management cluster.

    Attributes:
        causes: Why; those of last time while it waits for calm.
        frozen: No deletion without a wish, no token, no replacement.
        calm_since: Since when there is no cause any more; None while there is one.
    """

    causes: frozenset[BreakerCause] = frozenset()
    frozen: bool = False
    calm_since: float | None = None


def few(number: int, *, of: int) -> bool:
    """Tell whether so many are few enough to be believed one by one."""
    return number <= max(FEW, int(of * PART))


def shrank(before: int, after: int) -> bool:
    """Tell whether a new list lacks more than deletions since the last one explain."""
    return before - after > max(FEW, int(before * SHRINK_PART))


def causes(facts: BreakerFacts) -> frozenset[BreakerCause]:
    """Return why the facts are doubtful; empty when they are normal."""
    failing = facts.answers >= ANSWERS_MIN and facts.failures > facts.answers * FAILURES_PART
    found = {
        BreakerCause.RECORDS_VANISHED: not few(facts.missing, of=facts.aggregates),
        BreakerCause.SUBSTRATES_LOST: not few(facts.lost, of=facts.aggregates),
        BreakerCause.API_SERVER_FAILS: failing,
        BreakerCause.CACHE_STALE: facts.silent_s > SILENCE_S,
        BreakerCause.STORE_UNREACHABLE: not facts.store,
    }
    everything = {cause for cause, holds in found.items() if holds} | facts.doubts
    return frozenset(everything - ACCEPTABLE if facts.accepted else everything)


def next_mode(mode: BreakerMode, facts: BreakerFacts, *, now: float) -> BreakerMode:
    """Freeze at the first cause; thaw after CALM_S without any, at once when accepted."""
    found = causes(facts)
    if found:
        return BreakerMode(causes=found, frozen=True)
    if not mode.frozen or facts.accepted:
        return BreakerMode()
    since = now if mode.calm_since is None else mode.calm_since
    return BreakerMode() if now - since >= CALM_S else replace(mode, calm_since=since)
