"""Tracks whether this management cluster is driven, by this process or another.

What was last heard of the lease and of the controller's own looks, and when silence is a fault.
Heard in memory alone: whoever asks whether a process is ready costs no store anything.
Source: docs/decisions/0021, "Readiness".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

MISSED: Final = 3
"""Intervals of silence: one look may fail and one take long, and nobody need look."""

SILENCE_MIN: Final = timedelta(seconds=10)
"""However short its interval, a look may take seconds."""


class Liveness:
    """Hears, and tells what is missing.

    Args:
        clock: Seconds that go on while the process stands still.
        unled: For how long the store may tell of no leader before that is a fault.
        looks: The interval of each look that a leader must go on finishing, by its name.
    """

    def __init__(
        self, clock: Callable[[], float], *, unled: timedelta, looks: Mapping[str, timedelta]
    ) -> None:
        self._clock = clock
        self._unled_s = unled.total_seconds()
        self._limits_s = {
            name: max(SILENCE_MIN, MISSED * interval).total_seconds()
            for name, interval in looks.items()
        }
        self._led_at = clock()
        self._finished_at = dict.fromkeys(self._limits_s, self._led_at)

    def led(self, *, by_us: bool) -> None:
        """Hear from the store that somebody holds the lease.

        Args:
            by_us: This process does. Where another one does, the looks are its own to tell of.
        """
        self._led_at = self._clock()
        if not by_us:
            self._finished_at = dict.fromkeys(self._limits_s, self._led_at)

    def finished(self, name: str) -> None:
        """Note that a look ended well."""
        if name in self._finished_at:
            self._finished_at[name] = self._clock()

    def begun(self) -> None:
        """Note that a controller looked at everything once."""
        for name in self._finished_at:
            self.finished(name)

    @property
    def fault(self) -> str | None:
        """What is missing, in one line; None while the cluster is driven, by whomever."""
        now = self._clock()
        if now - self._led_at > self._unled_s:
            return "no leader is known: the lease can be neither acquired nor renewed"
        late = [
            name
            for name, limit_s in self._limits_s.items()
            if now - self._finished_at[name] > limit_s
        ]
        if late:
            return f"{', '.join(late)}: not finished for {MISSED} intervals"
        return None
