"""Ten minutes of anything on the real control plane, drawn from a seed; each promise is judged.

`RANDOM_RUN_SEED` and `RANDOM_RUN_MINUTES` choose another run (the seed is 1 by default, and stands
in each failure). What was done, what it was answered and what came of it is left in the stack's
folder.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from dev.stack import Stack
from tests.e2e.conftest import LONG
from tests.e2e.random_run.deeds import Kind, draw
from tests.e2e.random_run.history import History
from tests.e2e.random_run.judge import judge
from tests.e2e.random_run.runner import REST_S, SETTLED_S, Run
from tests.e2e.random_run.timeline import timeline

SEED: Final = int(os.environ.get("RANDOM_RUN_SEED", "1"))
MINUTES: Final = float(os.environ.get("RANDOM_RUN_MINUTES", "10"))

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not LONG, reason="ten minutes and more: `make test-long` has them"),
    pytest.mark.timeout(MINUTES * 60 + SETTLED_S + REST_S + 600),
]


def test_a_random_run_keeps_every_promise(stack: Stack) -> None:
    print(f"RANDOM_RUN_SEED={SEED} RANDOM_RUN_MINUTES={MINUTES:g}", flush=True)
    if stack.plane.audit_log is None:
        pytest.skip("nobody tells us who wrote to another's API server")
    told: list[str] = []
    run = Run(stack, draw(SEED, MINUTES), told.append)
    page = stack.run_dir / f"random-run-{SEED}.txt"
    try:
        history = run.live()
    finally:
        page.write_text("\n".join(told), encoding="utf-8")

    breaches = judge(history)
    lines = [*told, "", *timeline(history), "", *map(str, breaches)]
    page.write_text("\n".join(lines), encoding="utf-8")

    assert breaches == [], f"seed {SEED}, all of it in {page}:\n" + "\n".join(map(str, breaches))
    assert _thin(run, history) == [], f"seed {SEED} proves little"


def _thin(run: Run, history: History) -> list[str]:
    """Say what the evidence lacks to prove anything."""
    answered = {done.deed.kind for done in run.done if 200 <= done.status <= 299}
    refused = {done.deed.kind for done in run.done if 400 <= done.status <= 499}
    wanted = {
        "nodes": len(history.nodes) >= 6,
        "machines of the cloud": len(history.boots) >= 6,
        "nodes that left": any(node.deregistered_at for node in history.nodes),
        "refused tries": any(one.held and one.status == 403 for one in history.tries),
        "looks": len(history.looks) > 100,
        "deletions": any(kind.startswith("delete-") for kind in answered),
        "refused edits": Kind.EDIT_REFERENCE in refused,
        "a killed reconciler": bool(run.outages),
    }
    return [what for what, there in wanted.items() if not there]
