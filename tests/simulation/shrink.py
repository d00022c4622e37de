"""The least of a world that still breaks its promise.

Leaving out plans and XRs, and keeping what is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.simulation.schedule import Schedule

TRIES_MAX: Final = 200
"""Worlds that are played for one failure, a tenth of a second each."""


def shrink(schedule: Schedule, breaks: Callable[[Schedule], bool]) -> Schedule:
    """Return a schedule that breaks as well and from which nothing can be left out.

    Args:
        schedule: One that breaks.
        breaks: Plays a schedule; tells whether the same promise is broken.
    """
    tries = 0
    smaller: Schedule | None = schedule
    while smaller is not None:
        schedule, smaller = smaller, None
        for candidate in _candidates(schedule):
            tries += 1
            if tries > TRIES_MAX:
                return schedule
            if breaks(candidate):
                smaller = candidate
                break
    return schedule


def _candidates(schedule: Schedule) -> list[Schedule]:
    """Return each world with one XR or one plan fewer; the last XR first, so names stay."""
    found: list[Schedule] = []
    last = len(schedule.xrs) - 1
    if last and not any(plan.target == last for plan in schedule.plans):
        found.append(replace(schedule, xrs=schedule.xrs[:-1], recreate=schedule.recreate[:-1]))
    numbers = range(len(schedule.plans))
    found += [schedule.only([one for one in numbers if one != left]) for left in numbers]
    return found
