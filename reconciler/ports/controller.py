"""The state of a controller, for people and for metrics.

One value, read at one moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.domain.guard.circuit_breaker import BreakerCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """The count and the seconds of finished runs, by kind of key and outcome."""

    runs: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """A controller at one moment.

    Attributes:
        worked: By a key's kind and whether its work failed.
        waiting: Keys that wait for a worker.
        failing: Keys that failed when they were worked on last.
        aggregates: Those that are not Deleted, as the last sweep counted them.
        settled: Records that rest until something changes.
        vanished: Records that are gone although nobody asked for that.
        causes: Why what is seen is not believed; empty when it is.
    """

    worked: Mapping[tuple[str, bool], Worked]
    waiting: int
    failing: int
    aggregates: int
    settled: int
    missing: int
    causes: frozenset[BreakerCause]
