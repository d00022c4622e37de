"""Many worlds in several processes, and what became of them.

Seeds in, figures and failures out. A world is played by one process; a failure is played
again and shrunk where it happened.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.schedule import Schedule, draw
from tests.simulation.shrink import shrink
from tests.simulation.world import Played, play

CHUNK: Final = 10
"""Worlds per task: some seconds, so that little is lost when a run is interrupted."""

AHEAD: Final = 2
"""Tasks per process that are handed out before they are needed."""

TRACE_MAX: Final = 60
"""Last lines of a failing world's trace that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A world that broke a promise, and the least of it that does."""

    seed: int
    breach: str
    plans: tuple[str, ...]
    kept: tuple[int, ...]
    trace: tuple[str, ...]

    def __str__(self) -> str:
        kept = ",".join(map(str, self.kept)) or "none"
        return "\n".join(
            (
                f"seed {self.seed}: {self.breach}",
                *(f"  plan {plan}" for plan in self.plans),
                f"  again: python -m dev.simulate --seed {self.seed} --plans {kept}",
                *(f"  {line}" for line in self.trace),
            )
        )


@dataclass(slots=True, kw_only=True)
class Tally:
    """Figures over many worlds.

    Attributes:
        upto: All seeds below it were played.
    """

    upto: int
    worlds: int = 0
    lives: int = 0
    effects: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another's worlds, which follow these."""
        self.upto = other.upto
        self.worlds += other.worlds
        self.lives += other.lives
        self.effects += other.effects
        self.failures += other.failures


def failed(schedule: Schedule, played: Played) -> Failure:
    """Return a failing world, shrunk."""
    promise = None if played.breach is None else played.breach.promise

    def breaks(candidate: Schedule) -> bool:
        again = play(candidate).breach
        return again is not None and again.promise == promise

    least = shrink(schedule, breaks)
    again = play(least)
    return Failure(
        seed=schedule.seed,
        breach=str(again.breach),
        plans=tuple(map(str, least.plans)),
        kept=tuple(n for n, plan in enumerate(schedule.plans) if plan in least.plans),
        trace=again.trace[-TRACE_MAX:],
    )


def chunk(seeds: Sequence[int]) -> Tally:
    """Play some seeds one after the other."""
    tally = Tally(upto=seeds[-1] + 1)
    for seed in seeds:
        schedule = draw(seed)
        played = play(schedule)
        tally.worlds += 1
        tally.lives += played.lives
        tally.effects += played.effects
        if played.breach is not None:
            tally.failures.append(failed(schedule, played))
    return tally


def run(*, first: int, lives: int, processes: int) -> Iterator[Tally]:
    """Play worlds from a seed on until a number of lives is reached.

    Yields:
        The figures of each chunk, in the order of its seeds.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        handed: list[Future[Tally]] = []
        seed, lived = first, 0
        while lived < lives:
            while len(handed) < processes * AHEAD:
                handed.append(pool.submit(chunk, range(seed, seed + CHUNK)))
                seed += CHUNK
            done = handed.pop(0).result()
            lived += done.lives
            yield done
        for task in handed:
            task.cancel()
