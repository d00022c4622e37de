"""One running stack for all end-to-end tests, and nodes on it."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.stack import ROOT, Stack
from tests.e2e.world import CLOUD_API, Node, wait_for

DELAY_FUNCTION = "tests-function-delay"
DELAYS = (0.5, 4.0)
_numbers = itertools.count(1)

MakeNode = Callable[..., Node]


def delayed(seconds: float) -> str:
    """Name the Composition whose pipeline is that much slower."""
    return f"provisionedresource-delayed-{str(seconds).replace('.', '-')}"


LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Whether this run has the minutes of `make test-long`, and not those of `make test`."""

TAKEN = DELAYS if LONG else (max(DELAYS),)
PIPELINES = ["provisionedresource", *(delayed(seconds) for seconds in TAKEN)]
PIPELINE_IDS = ["prompt", *(f"delay-{seconds}" for seconds in TAKEN)]
"""The prompt one and the slowest; `make test-long` has those between, too."""


def delay_step(seconds: float) -> dict[str, Any]:
    """Return a pipeline's step that takes that long and does nothing."""
    given = {"apiVersion": "tests.plexsphere.com/v1", "kind": "Delay", "seconds": seconds}
    return {"step": "delay", "functionRef": {"name": DELAY_FUNCTION}, "input": given}


@pytest.fixture(scope="package")
def stack() -> Iterator[Stack]:
    (ROOT / ".run").mkdir(exist_ok=True)
    run_dir = Path(tempfile.mkdtemp(prefix="e2e-", dir=ROOT / ".run"))
    lines: list[str] = []
    often = {"PLEXSPHERE_PROVISIONING_BROKER_ORPHAN_INTERVAL": "5s"}
    with Stack(run_dir, report=lines.append, env=often) as running:
        running.start_function(
            DELAY_FUNCTION, [sys.executable, str(Path(__file__).parent / "delay_function.py")]
        )
        running.plane.apply(ROOT / "example/platform", *(_delayed(s) for s in DELAYS))
        wait_for(lambda: _project_ready(running), "the Project's namespace")
        yield running


@pytest.fixture
def make_node(stack: Stack) -> MakeNode:
    """Make a node that no other test knows."""

    def make(**options: Any) -> Node:
        return Node(stack, f"node-{next(_numbers)}", **options)

    return make


@pytest.fixture
def machines(stack: Stack) -> Callable[[str], list[Any]]:
    return lambda namespace: stack.plane.cluster.list(CLOUD_API, "Machine", namespace)


def _project_ready(stack: Stack) -> bool:
    project = stack.plane.cluster.get("provisioning.plexsphere.com/v1alpha1", "Project", "shop")
    return ((project or {}).get("status") or {}).get("namespacePhase") == "Ready"


def _delayed(seconds: float) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - only to copy one Composition

    source = ROOT / "compositions/provisionedresource.yaml"
    composition: dict[str, Any] = yaml.safe_load(source.read_text(encoding="utf-8"))
    composition["metadata"] = {"name": delayed(seconds)}
    composition["spec"]["pipeline"].append(delay_step(seconds))
    return composition
