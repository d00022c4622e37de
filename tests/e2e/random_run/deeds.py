"""What people, machines and crashes do in a random run, drawn from a seed before it begins.

A schedule is data: the same seed gives the same one, and which deed meets which XR in which state
is then up to the real control plane. Each kind of deed is dealt once before any comes twice, so
that ten minutes have all of them. The draw keeps in mind which XRs it has deleted, or most deeds
would meet nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

MACHINES: Final = 10
"""ProvisionedResources."""

POOLS: Final = 2
"""XRs of a platform team's own kind, with `Enrol`; they have the numbers after the others."""

XRS: Final = MACHINES + POOLS
PROJECTS: Final = 3

EVERY_S: Final = 4.0
"""Between two deeds on the average: each XR has a life's time, and two cores keep up."""

APPLIED_S: Final = 24.0
"""Until then all are applied for the first time."""


@unique
class Kind(StrEnum):
    """What may be done; what it is done to is `Deed.target`."""

    # By whoever writes to Git.
    APPLY = "apply"
    EDIT_LABELS = "edit-labels"
    EDIT_MUTABLE = "edit-mutable-parameter"
    EDIT_FIXED = "edit-fixed-parameter"
    EDIT_REFERENCE = "edit-reference"
    RESIZE = "resize"
    RETRY = "retry"
    DELETE_BACKGROUND = "delete-background"
    DELETE_FOREGROUND = "delete-foreground"
    DELETE_ORPHAN = "delete-orphan"
    # By a person with kubectl.
    DELETE_RECORD = "delete-record"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    BREAK_GLASS_SUBSTRATE = "break-glass-substrate"
    BREAK_GLASS_MACHINE = "break-glass-machine"
    # By one who may patch and delete managed resources, and is no administrator.
    TRY_CHANGES = "try-changes"
    TRY_DELETING = "try-deleting"
    # By the cloud and its machines.
    DELETE_HANGS = "cloud-deletes-slowly"
    DELETE_FAILS = "cloud-fails-to-delete"
    CLOUD_MENDED = "cloud-mended"
    NODE_LATE = "node-registers-late"
    # To the reconciler.
    KILL = "kill-reconciler"


DELETIONS: Final = frozenset({Kind.DELETE_BACKGROUND, Kind.DELETE_FOREGROUND, Kind.DELETE_ORPHAN})
OF_MACHINES: Final = frozenset({Kind.EDIT_MUTABLE, Kind.EDIT_FIXED, Kind.EDIT_REFERENCE})
OF_POOLS: Final = frozenset({Kind.RESIZE})

_WEIGHTS: Final = {
    Kind.APPLY: 12,
    Kind.DELETE_BACKGROUND: 3,
    Kind.TRY_CHANGES: 3,
    Kind.DELETE_FOREGROUND: 2,
    Kind.DELETE_ORPHAN: 2,
    Kind.DELETE_RECORD: 2,
    Kind.TRY_DELETING: 2,
    Kind.EDIT_LABELS: 2,
    Kind.NODE_LATE: 2,
    Kind.KILL: 2,
}
"""Of a kind that is not named: 1."""


@unique
class Fault(StrEnum):
    """What goes wrong with the machine of an XR, as its labels ask of the demo cloud."""

    NONE = ""
    CREATE_HANGS = "demo-create=hang"
    CREATE_FAILS = "demo-create=fail"
    CREATE_REFUSED = "demo-create=refuse"
    NEVER_BOOTS = "demo-boot=never"

    @property
    def labels(self) -> dict[str, str]:
        name, _, value = self.partition("=")
        return {name: value} if name else {}


_FAULTS: Final = {
    Fault.NONE: 10,
    Fault.NEVER_BOOTS: 4,
    Fault.CREATE_HANGS: 1,
    Fault.CREATE_FAILS: 1,
    Fault.CREATE_REFUSED: 1,
}

_FIRST_FAULTS: Final = {
    Fault.NONE: 6,
    Fault.NEVER_BOOTS: 3,
    Fault.CREATE_HANGS: 1,
    Fault.CREATE_FAILS: 1,
    Fault.CREATE_REFUSED: 1,
}
"""Of the twelve when they are applied for the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing that is done.

    Attributes:
        at_s: When, from the run's beginning.
        target: Number of the XR; 0 where it is none's.
        length_s: How long the reconciler stays down.
        fault: What goes wrong with the machine, where one is declared.
        chance: What else is left to chance, 0 or more and less than a thousand.
    """

    at_s: float
    kind: Kind
    target: int = 0
    length_s: float = 0.0
    fault: Fault = Fault.NONE
    chance: int = 0

    def __str__(self) -> str:
        more = f" with {self.fault}" if self.fault else ""
        return f"{self.at_s:.1f} s: {self.kind} xr-{self.target}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run.

    Attributes:
        parting: Numbers of the XRs that are deleted at the end, half of all.
    """

    seed: int
    length_s: float
    deeds: tuple[Deed, ...]
    parting: tuple[int, ...]


class _Draw:
    """Draws deeds, and remembers what they leave the XRs in."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._declared: set[int] = set()
        self._paused: set[int] = set()
        self._silent: set[int] = set()

    def first(self) -> list[Deed]:
        """Return what applies each XR for the first time; every fault is among them."""
        faults = [fault for fault, times in _FIRST_FAULTS.items() for _ in range(times)]
        self._rng.shuffle(faults)
        return [
            self._done(Kind.APPLY, self._rng.uniform(0.0, APPLIED_S), number, fault)
            for number, fault in enumerate(faults)
        ]

    def deed(self, kind: Kind, at_s: float) -> Deed:
        target = 0 if kind is Kind.KILL else self._rng.choice(self._targets(kind))
        fault = Fault.NONE
        if kind in (Kind.APPLY, Kind.EDIT_LABELS):
            fault = self._rng.choices(list(_FAULTS), list(_FAULTS.values()))[0]
        return self._done(kind, at_s, target, fault)

    def _done(self, kind: Kind, at_s: float, target: int, fault: Fault) -> Deed:
        rng = self._rng
        self._remember(kind, target, fault)
        return Deed(
            at_s=round(at_s, 3),
            kind=kind,
            target=target,
            length_s=round(rng.uniform(0.0, 15.0), 3) if kind is Kind.KILL else 0.0,
            fault=fault,
            chance=rng.randrange(1000),
        )

    def _remember(self, kind: Kind, target: int, fault: Fault) -> None:
        if kind is Kind.APPLY and target not in self._declared:
            self._declared.add(target)
            if fault is Fault.NEVER_BOOTS:
                self._silent.add(target)
        if kind in DELETIONS:
            self._declared.discard(target)
            self._silent.discard(target)
        if kind is Kind.PAUSE:
            self._paused.add(target)
        if kind is Kind.UNPAUSE:
            self._paused.discard(target)

    def _targets(self, kind: Kind) -> list[int]:
        every = range(MACHINES) if kind in OF_MACHINES else range(XRS)
        if kind in OF_POOLS:
            every = range(MACHINES, XRS)
        likely = {Kind.UNPAUSE: self._paused, Kind.NODE_LATE: self._silent}.get(kind)
        if likely:
            return sorted(likely)
        declared = [number for number in every if number in self._declared]
        absent = [number for number in every if number not in self._declared]
        # Applied again is what is gone, or for want of that what is there; all else is done to
        # what is there.
        return (absent or declared) if kind is Kind.APPLY else (declared or absent)


def draw(seed: int, minutes: float) -> Schedule:
    """Return the run of a seed.

    Args:
        minutes: Above 0.
    """
    rng = random.Random(f"random-run/{seed}")  # noqa: S311 - a test's plan
    length_s = minutes * 60.0
    drawing = _Draw(rng)
    first = drawing.first()
    count = round((length_s - APPLIED_S) / EVERY_S)
    times = sorted(rng.uniform(APPLIED_S, length_s) for _ in range(max(0, count)))
    kinds = _dealt(rng, len(times))
    deeds = [drawing.deed(kind, at_s) for kind, at_s in zip(kinds, times, strict=True)]
    return Schedule(
        seed=seed,
        length_s=length_s,
        deeds=tuple(sorted((*first, *deeds), key=lambda deed: deed.at_s)),
        parting=tuple(sorted(rng.sample(range(XRS), XRS // 2))),
    )


def _dealt(rng: random.Random, count: int) -> list[Kind]:
    """Deal each kind once, and then as often as it weighs; in any order."""
    every = list(Kind)
    rng.shuffle(every)
    weights = [_WEIGHTS.get(kind, 1) for kind in every]
    more = rng.choices(every, weights, k=max(0, count - len(every)))
    dealt = [*every[:count], *more]
    rng.shuffle(dealt)
    return dealt
