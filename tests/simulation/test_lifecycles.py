"""Simulated lives keep the nine promises, whatever goes wrong.

`SIMULATED_LIVES` says how many, ten thousand in CI; `make simulate LIVES=1000000` plays any number,
and goes on where it was interrupted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

import pytest

from tests.simulation import batch, evidence
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.evidence import EVIDENCE
from tests.simulation.given import plan, world
from tests.simulation.schedule import Kind, Schedule, draw
from tests.simulation.world import Played, play

LIVES: Final = int(os.environ.get("SIMULATED_LIVES", "500"))
PROCESSES: Final = 2

ROOT: Final = Path(__file__).parents[2]
SEEDS: Final = Path(__file__).with_name("regressions.txt").read_text().splitlines()
KNOWN: Final = [int(line.split()[0]) for line in SEEDS if line[:1].isdigit()]

_DIGESTS: Final = """
from tests.simulation.schedule import draw
from tests.simulation.world import play
for seed in (11, 12, 13):
    print(play(draw(seed)).digest)
"""


def ready_at(played: Played, name: str) -> float:
    """Return when an XR was Ready for the first time, in seconds."""
    line = next(line for line in played.trace if line.endswith(f"phase: {name} Ready"))
    return float(line.split()[0])


@pytest.mark.timeout(1500)
def test_simulated_lives_keep_the_promises() -> None:
    tally = batch.Tally(upto=0)

    for done in batch.run(first=0, lives=LIVES, processes=PROCESSES):
        tally.add(done)

    assert not tally.failures, "\n\n".join(map(str, tally.failures))
    assert tally.lives >= LIVES


@pytest.mark.parametrize("seed", KNOWN)
def test_a_seed_that_once_broke_a_promise_keeps_it(seed: int) -> None:
    assert play(draw(seed)).breach is None


def test_a_seed_gives_the_same_trace_whatever_the_hash_seed() -> None:
    def digests(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=250,
        ).stdout

    assert digests("1") == digests("4711") != ""


def test_everything_that_may_go_wrong_is_drawn_and_was_seen_for_real() -> None:
    drawn = Counter(plan.kind for seed in range(2000) for plan in draw(seed).plans)

    assert set(drawn) == set(Kind) == set(EVIDENCE)
    assert min(drawn.values()) >= 50


def test_each_test_that_is_named_as_evidence_is_there() -> None:
    """That it makes its fault is seen whenever it runs."""
    modules = sorted({test.partition("::")[0] for test in EVIDENCE.values()})
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    ).stdout

    assert set(EVIDENCE.values()) <= set(told.splitlines())


def test_a_test_that_does_not_make_its_fault_is_no_evidence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = EVIDENCE[Kind.FLAPS]
    monkeypatch.setattr(evidence, "_made", defaultdict(set))
    assert evidence.unmade(named) == [Kind.FLAPS]

    monkeypatch.setenv("PYTEST_CURRENT_TEST", f"{named} (call)")
    evidence.made(Kind.FLAPS)

    assert evidence.unmade(named) == []


@pytest.mark.parametrize("kind", list(Kind))
def test_a_world_survives_one_thing_that_goes_wrong(kind: Kind) -> None:
    for at in (12.0, 40.0):
        played = play(world(plan(kind, at, 45.0), xrs=2))

        assert played.breach is None, (kind, at)
        assert played.lives >= 2


def test_one_object_that_always_fails_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 8: the others are Ready when they would have been without it."""
    schedule: Schedule = world(xrs=5)
    before = play(schedule)
    write = SimulatedCluster.write_status

    async def poisoned(self: SimulatedCluster, record: dict, status: dict) -> None:  # type: ignore[type-arg]
        if record["metadata"]["name"].startswith("web-0-"):
            raise OSError
        await write(self, record, status)

    monkeypatch.setattr(SimulatedCluster, "write_status", poisoned)

    after = play(schedule)

    assert after.breach is not None
    assert after.breach.promise == 5
    for name in ("web-1", "web-2", "web-3", "web-4"):
        assert ready_at(after, name) - ready_at(before, name) < 2.0
