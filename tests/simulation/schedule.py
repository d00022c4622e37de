"""What is going to happen in one world, drawn from its seed before anything happens.

Plans as data, so that a failing world can be run again with fewer of them. What a plan does
not say, each part of the world draws from a stream of its own, so that one plan fewer
leaves the rest as it was.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import Final

HORIZON_S: Final = 420.0
"""Until then things go wrong; afterwards the world is mended and must come to rest."""

PLANS_MAX: Final = 3
"""Things that go wrong, beside one per XR."""

EFFECTS_PER_XR: Final = 28
"""About what one life costs: which one is struck is drawn among so many."""


@unique
class Kind(StrEnum):
    """What may go wrong; numbers are those of the fault catalogue."""

    # At the n-th effect of the broker.
    KILL_BEFORE = "kill-before"  # 1
    KILL_AFTER = "kill-after"  # 1
    REFUSED = "refused"  # 3, 12
    REPLY_LOST = "reply-lost"  # 12, 25
    STOPPED = "stopped"  # 4: SIGSTOP, a successor takes over
    # For a while.
    POSTGRES_AWAY = "postgres-away"  # 30
    API_AWAY = "api-away"  # 12, 24
    CONFLICTS = "conflicts"  # 13
    WATCH_STALLED = "watch-stalled"  # 14
    TIME_TRAVEL = "time-travel"  # 15
    SPLIT_LEAD = "split-lead"  # 5
    SLOW_PIPELINE = "slow-pipeline"  # 10, 22
    BREAKER = "breaker"  # 22
    CROSSPLANE_AWAY = "crossplane-away"  # 22
    BLUEPRINT_GONE = "blueprint-gone"  # 67
    NAMESPACE_NOT_READY = "namespace-not-ready"  # 58
    POLICIES_GONE = "policies-gone"  # 17
    CLOCK_SKEW = "clock-skew"  # 34, 40
    NODES_CUT_OFF = "nodes-cut-off"  # 47
    CLOUD_SLOW = "cloud-slow"  # 38
    CREATE_FAILS = "create-fails"  # 48
    TWICE_CREATED = "twice-created"  # 49, 45
    DELETE_HANGS = "delete-hangs"  # 54
    FLAPS = "flaps"  # 55
    AGENT_DEAD = "agent-dead"  # 38, 51
    AGENT_REPLY_LOST = "agent-reply-lost"  # 36
    AGENT_CLONED = "agent-cloned"  # 35, 45
    AGENT_SLOW = "agent-slow"  # 38, 46
    # By people.
    DELETE_BACKGROUND = "delete-background"  # 20
    DELETE_FOREGROUND = "delete-foreground"  # 20
    DELETE_ORPHAN = "delete-orphan"  # 20
    DELETE_RECORD = "delete-record"  # 19
    STRIP_FINALIZER = "strip-finalizer"  # 20
    BREAK_GLASS = "break-glass"  # 52
    PAUSE_XR = "pause-xr"  # 22
    EDIT = "edit"  # 66
    RETRY = "retry"


AT_EFFECT: Final = frozenset(
    {Kind.KILL_BEFORE, Kind.KILL_AFTER, Kind.REFUSED, Kind.REPLY_LOST, Kind.STOPPED}
)
BY_PEOPLE: Final = frozenset(
    {
        Kind.DELETE_BACKGROUND, Kind.DELETE_FOREGROUND, Kind.DELETE_ORPHAN, Kind.DELETE_RECORD,
        Kind.STRIP_FINALIZER, Kind.BREAK_GLASS, Kind.PAUSE_XR, Kind.EDIT, Kind.RETRY,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One thing that goes wrong.

    Attributes:
        at: The effect's number from the world's beginning, or the second it begins.
        length_s: For how long.
        target: Which XR it strikes, where it strikes one.
    """

    kind: Kind
    at: float
    length_s: float
    target: int

    def __str__(self) -> str:
        where = f"effect {self.at:.0f}" if self.kind in AT_EFFECT else f"{self.at:.1f} s"
        return f"{self.kind} at {where} for {self.length_s:.1f} s on {self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One world.

    Attributes:
        xrs: When each XR is applied, in seconds.
        recreate: Whether each asks for a new machine when its node does not come.
    """

    seed: int
    xrs: tuple[float, ...]
    recreate: tuple[bool, ...]
    plans: tuple[Plan, ...]

    @property
    def horizon_s(self) -> float:
        """Return when the last thing that goes wrong is over, and what is made is made."""
        ends = [plan.at + plan.length_s for plan in self.plans if plan.kind not in AT_EFFECT]
        return min(HORIZON_S, max((90.0, *(end + 30.0 for end in ends))))

    def only(self, numbers: Sequence[int]) -> Schedule:
        """Return the same world with some of its plans."""
        return replace(self, plans=tuple(self.plans[number] for number in numbers))

    def active(self, kind: Kind, now_s: float, target: int | None = None) -> Plan | None:
        """Return the plan of a kind that lasts now, if there is one; not past the horizon."""
        for plan in self.plans:
            fits = plan.kind is kind and plan.at <= now_s < plan.at + plan.length_s
            if fits and now_s < HORIZON_S and target in (None, plan.target):
                return plan
        return None

    def planned(self, kind: Kind, target: int) -> bool:
        """Tell whether something is planned for an XR, whenever."""
        return any(plan.kind is kind and plan.target == target for plan in self.plans)


def draw(seed: int) -> Schedule:
    """Return the world of a seed."""
    rng = random.Random(f"schedule/{seed}")  # noqa: S311 - a simulation
    count = rng.choice((1, 2, 4, 6, 8))
    wrong = rng.randint(0, PLANS_MAX + count)
    return Schedule(
        seed=seed,
        xrs=tuple(round(rng.uniform(0.0, 20.0), 3) for _ in range(count)),
        recreate=tuple(rng.random() < 0.5 for _ in range(count)),
        plans=tuple(_plan(rng, count) for _ in range(wrong)),
    )


def _plan(rng: random.Random, xrs: int) -> Plan:
    kind = rng.choice(tuple(Kind))
    at = rng.uniform(0.0, HORIZON_S * 0.7)
    if kind in AT_EFFECT:
        at = rng.randint(1, EFFECTS_PER_XR * xrs)
    elif rng.random() < 0.4:
        at = rng.uniform(0.0, 60.0)
    length = min(rng.expovariate(1 / 60.0) + 1.0, 300.0)
    return Plan(kind=kind, at=round(at, 3), length_s=round(length, 3), target=rng.randrange(xrs))
