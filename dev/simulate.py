"""Plays simulated lives, any number of them, and goes on where it was interrupted.

``python -m dev.simulate --lives 1000000`` plays worlds from seed 0 on; after each chunk the
figures go to the state file, and the same command goes on from there. ``--seed N`` plays
one world and shows its trace. The command.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.simulation import batch
from tests.simulation.schedule import draw
from tests.simulation.world import play

STATE: Final = Path(".run/simulation.json")
FAILURES_MAX: Final = 20
"""Failing seeds after which nothing new is learnt."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m dev.simulate", description=__doc__)
    parser.add_argument("--lives", type=int, default=10_000, help="lives in all, over all runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the first seed of a new run")
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--seed", type=int, help="play one world and show its trace")
    parser.add_argument("--plans", help="which of its plans: numbers with commas, or none")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        return _one(given.seed, given.plans)
    return _many(given.lives, given.processes, given.first, given.state)


def _one(seed: int, plans: str | None) -> int:
    schedule = draw(seed)
    if plans is not None:
        numbers = [] if plans == "none" else [int(one) for one in plans.split(",")]
        schedule = schedule.only(numbers)
    played = play(schedule)
    print(*played.trace, sep="\n")
    print(*(f"plan {number}: {plan}" for number, plan in enumerate(schedule.plans)), sep="\n")
    print(f"seed {seed}: {played.breach or 'kept'}, {played.lives} lives, trace {played.digest}")
    return 0 if played.breach is None else 1


def _many(lives: int, processes: int, first: int, state: Path) -> int:
    tally = _resumed(state, first)
    began, before = time.monotonic(), tally.lives
    for done in batch.run(first=tally.upto, lives=lives - tally.lives, processes=processes):
        tally.add(done)
        for failure in done.failures:
            print(failure, flush=True)
        _keep(state, tally)
        took = time.monotonic() - began
        rate = (tally.lives - before) / took
        print(
            f"{tally.lives} lives in {tally.worlds} worlds, {tally.effects} effects, "
            f"{len(tally.failures)} failures, {rate:.0f} lives/s, next seed {tally.upto}",
            file=sys.stderr,
        )
        if len(tally.failures) >= FAILURES_MAX:
            break
    seeds = [failure.seed for failure in tally.failures]
    print(f"{tally.lives} lives, {tally.worlds} worlds, failing seeds: {seeds or 'none'}")
    return 1 if tally.failures else 0


def _resumed(state: Path, first: int) -> batch.Tally:
    if not state.exists():
        return batch.Tally(upto=first)
    kept = json.loads(state.read_text())
    failures = [batch.Failure(**{**one, "kept": tuple(one["kept"])}) for one in kept["failures"]]
    return batch.Tally(**{**kept, "failures": failures})


def _keep(state: Path, tally: batch.Tally) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    written = state.with_suffix(".new")
    written.write_text(json.dumps(asdict(tally)))
    written.replace(state)


if __name__ == "__main__":
    sys.exit(main())
