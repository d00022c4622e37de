"""Judges the evidence of one process about a management cluster; open, it freezes the controller.

Evidence in memory, and judging it. One of these lives as long as its process: what was seen
while another one led counts, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from reconciler.app.guard.missing_records import MissingRecords
from reconciler.domain.aggregate import ids
from reconciler.domain.guard.circuit_breaker import (
    BreakerCause,
    BreakerFacts,
    BreakerMode,
    next_mode,
)

WINDOW_S: Final = 60.0
"""How long something that happened once counts."""

ANSWERS_WINDOW_S: Final = 30.0
"""How long an answer of the API server counts."""

LOOK_S: Final = 5.0
"""How often the evidence is judged while nobody here leads: as often as a controller does."""

_log = logging.getLogger(__name__)


class CircuitBreaker:
    """Evidence and verdict of one management cluster."""

    def __init__(
        self, monotonic: Callable[[], float], *, silent_s: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Begin steady.

        Args:
            monotonic: Seconds of a clock that never goes back.
            silent_s: How long the most silent cache heard nothing.
        """
        self._monotonic = monotonic
        self._silent_s = silent_s
        self._answers: deque[tuple[int, list[int]]] = deque()
        self._lost: deque[float] = deque()
        self._given_up: deque[float] = deque()
        self._doubts: dict[BreakerCause, float] = {}
        self._store = True
        self._accepted = False
        self._leads = False
        self.aggregates = 0
        self.missing = MissingRecords(monotonic)
        self.mode = BreakerMode()

    @property
    def frozen(self) -> bool:
        """Whether only what somebody asked for is done."""
        return self.mode.frozen

    def steady(self) -> bool:
        """Tell whether what is seen is believed."""
        return not self.mode.frozen

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lead for as long as the block lasts; what its controller alone knows ends with it.

        What was seen of the cluster outlasts it, and so does a freeze, until it is calm.
        """
        self.judge()
        self._leads = True
        if self.frozen:
            self._tell_frozen()
        try:
            yield
        finally:
            self._leads = self._accepted = False
            self._store = True
            self.missing.only(())

    async def watch(self) -> None:
        """Judge while no controller does, until cancelled: what is too old is dropped then."""
        while True:
            if not self._leads:
                self.judge()
            await asyncio.sleep(LOOK_S)

    def answered(self, well: bool) -> None:  # noqa: FBT001 - a callback of the client
        """Note an answer of the API server, or that there was none."""
        second = int(self._monotonic())
        if not self._answers or self._answers[-1][0] != second:
            self._answers.append((second, [0, 0]))
        self._answers[-1][1][not well] += 1

    def doubted(self, cause: BreakerCause) -> None:
        """Note what a cache found in a list or an event."""
        self._doubts[cause] = self._monotonic()
        self.judge()

    def lost(self) -> None:
        """Note that a substrate was lost under a live node."""
        self._lost.append(self._monotonic())

    def gave_up(self, resource: ids.ProvisionedResourceID) -> None:
        """Note that a record is believed to be gone."""
        self.missing.explained(resource)
        self._given_up.append(self._monotonic())

    def stored(self, *, well: bool) -> None:
        """Note whether Postgres answered."""
        self._store = well

    def accept(self, *, wanted: bool) -> None:
        """Note whether an operator declared what is seen true."""
        self._accepted = wanted

    def judge(self) -> bool:
        """Look at the evidence again; tell whether the cluster is frozen."""
        now = self._monotonic()
        before, self.mode = self.mode, next_mode(self.mode, self._facts(now), now=now)
        if self.mode.frozen and self.mode.causes != before.causes:
            self._tell_frozen()
        if before.frozen and not self.mode.frozen and self._leads:
            _log.warning("thawed accepted=%s", str(self._accepted).lower())
        return self.mode.frozen

    def _tell_frozen(self) -> None:
        if self._leads:
            _log.error("frozen causes=%s", ",".join(sorted(self.mode.causes)))

    def _facts(self, now: float) -> BreakerFacts:
        for happened in (self._lost, self._given_up):
            while happened and now - happened[0] > WINDOW_S:
                happened.popleft()
        while self._answers and now - self._answers[0][0] > ANSWERS_WINDOW_S:
            self._answers.popleft()
        self._doubts = {cause: at for cause, at in self._doubts.items() if now - at <= WINDOW_S}
        well = sum(counts[0] for _, counts in self._answers)
        failures = sum(counts[1] for _, counts in self._answers)
        return BreakerFacts(
            aggregates=self.aggregates,
            missing=len(self.missing) + len(self._given_up),
            lost=len(self._lost),
            doubts=frozenset(self._doubts),
            answers=well + failures,
            failures=failures,
            silent_s=self._silent_s(),
            store=self._store,
            accepted=self._accepted,
        )
