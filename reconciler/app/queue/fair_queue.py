"""A queue in lanes that take turns.

Whose turn it is. Each Project is a lane, so that one with thousands of keys delays nobody
else by more than one turn; what an operator waits for goes first, and a sweep last, but never
for so long that the rest stands still.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from enum import IntEnum
from typing import Final, Generic, TypeVar

RUN: Final = 3
"""Keys of a rank in a row before a lower one gets a turn: a mass deletion stops no node, and
changes without end stop no sweep."""


class Rank(IntEnum):
    """The priority of a key.

    Ranks count among the lanes that have less than their share of workers.

    Attributes:
        ROUTINE: Nobody for this key alone: a sweep looks whether anything was missed, or a change
            elsewhere may have helped what is refused.
        CHANGED: Something changed.
        URGENT: Something goes, or came.
    """

    ROUTINE = 0
    CHANGED = 1
    URGENT = 2


K = TypeVar("K", bound=Hashable)


class FairQueue(Generic[K]):
    """Keys in lanes, each key once.

    Args:
        workers: How many keys are worked on at once. A lane has a quarter of them while
            another waits, and never more than three quarters: what hangs on one Project's
            objects leaves somebody to begin with the next Project at once.

    Memory is one entry per waiting key. Every call takes constant time.
    """

    def __init__(self, *, workers: int) -> None:
        self._share = max(1, workers // 4)
        self._most = max(1, workers - workers // 4)
        self._lanes: dict[Rank, OrderedDict[str, OrderedDict[K, None]]] = {
            rank: OrderedDict() for rank in Rank
        }
        self._places: dict[K, tuple[str, Rank]] = {}
        self._busy: Counter[str] = Counter()
        self._runs: Counter[Rank] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def put(self, key: K, lane: str, rank: Rank = Rank.CHANGED) -> None:
        """Let a key wait. Idempotency: one that waits keeps its place, or rises in rank."""
        known = self._places.get(key)
        if known is not None:
            if known[1] >= rank:
                return
            self._remove(key)
        self._lanes[rank].setdefault(lane, OrderedDict())[key] = None
        self._places[key] = (lane, rank)

    def take(self) -> K | None:
        """Take the next key, which occupies its lane until `done`; None when nothing may begin."""
        for bound, rank in self._steps():
            lanes = self._lanes[rank]
            lane = self._next(lanes, bound)
            if lane is None:
                continue
            for above in Rank:
                self._runs[above] = 0 if above > rank else self._runs[above]
            self._runs[rank] += 1
            key = next(iter(lanes[lane]))
            self._remove(key)
            if lane in lanes:
                lanes.move_to_end(lane)
            self._busy[lane] += 1
            return key
        return None

    def _steps(self) -> list[tuple[int, Rank]]:
        """Return the tries of one turn: how busy a lane may be, and the rank that is looked for.

        A lane that has its share waits for the others, but what is urgent there waits for no
        sweep of theirs, unless it is the sweep's turn.
        """
        order = self._order()
        steps = [(bound, rank) for bound in (self._share, self._most) for rank in order]
        if order[-1] is Rank.ROUTINE:
            urgent = (self._most, Rank.URGENT)
            steps.remove(urgent)
            steps.insert(steps.index((self._share, Rank.ROUTINE)), urgent)
        return steps

    def _order(self) -> list[Rank]:
        """Return whose turn it is: each rank before the lower ones, or after them for once."""
        order: list[Rank] = []
        for rank in Rank:
            order.insert(0 if self._runs[rank] < RUN else len(order), rank)
        return order

    def done(self, lane: str) -> None:
        """Note that a key of a lane is worked off."""
        self._busy[lane] -= 1
        if self._busy[lane] <= 0:
            del self._busy[lane]

    def _next(self, lanes: OrderedDict[str, OrderedDict[K, None]], bound: int) -> str | None:
        """Return the lane whose turn it is; at most a handful are busy and passed over."""
        return next((lane for lane in lanes if self._busy[lane] < bound), None)

    def _remove(self, key: K) -> None:
        lane, rank = self._places.pop(key)
        lanes = self._lanes[rank]
        del lanes[lane][key]
        if not lanes[lane]:
            del lanes[lane]
