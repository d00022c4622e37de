"""`make simulate` goes on where it was interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import simulate
from tests.simulation import batch


def test_a_run_that_was_interrupted_goes_on_with_the_next_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "simulation.json"
    begun: list[int] = []
    failure = batch.Failure(
        seed=41, breach="promise 5: …", plans=("edit",), kept=(0,), trace=("line",)
    )

    def some(*, first: int, lives: int, processes: int) -> list[batch.Tally]:
        begun.append(first)
        found = [failure] if first == 40 else []
        return [batch.Tally(upto=first + 10, worlds=10, lives=30, failures=found)]

    monkeypatch.setattr(batch, "run", some)

    first = simulate.main(["--lives", "60", "--first", "30", "--state", str(state)])
    second = simulate.main(["--lives", "60", "--first", "30", "--state", str(state)])

    assert begun == [30, 40]
    assert (first, second) == (0, 1)
    kept = simulate._resumed(state, 0)
    assert (kept.upto, kept.lives, kept.failures[0].seed) == (50, 60, 41)
