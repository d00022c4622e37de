"""Which tests share a worker when several run side by side, what begins first, and what one shows.

A folder's session fixtures (a control plane, a stack, a rendering) are dear: what uses one of them
stays together, so that each is made once, and no two whole stacks run at a time. Everything else
goes module by module. The whole stack takes longest of all and begins at once; beside it go the
others, the longest first, so that no worker is left alone with a long one at the end.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.simulation import evidence

BESIDE: Final = ("tests/e2e/test_controlplane.py", "tests/e2e/test_existing_cluster.py")
"""Modules of a folder of `TOGETHER` that have a control plane of their own, and no lives on it."""

TOGETHER: Final = (
    "tests/e2e/deploy/",
    "tests/e2e/",
    "tests/faults/",
    "tests/integration/cloud/",
    "tests/integration/grpc/",
    "tests/render/",
)
"""Folders of which each makes something once for a whole session; the first that fits counts."""

LONGEST: Final = (
    "tests/e2e/",
    "tests/simulation/",
    "tests/faults/",
    "tests/render/",
    "tests/integration/load/",
    "tests/integration/replicas/",
    "tests/integration/cloud/",
    "tests/integration/grpc/",
    "tests/integration/",
    "tests/contract/",
)
"""What takes minutes, the longest first; of what is not named, nothing does."""


def scope(nodeid: str) -> str:
    """Name the group that a test goes with."""
    module = nodeid.partition("::")[0]
    if module in BESIDE:
        return module
    return next((each for each in TOGETHER if module.startswith(each)), module)


def rank(nodeid: str) -> tuple[bool, int]:
    """Tell how late a test's group begins: the whole stack, the longest, the rest."""
    group = scope(nodeid)
    places = [place for place, each in enumerate(LONGEST) if group.startswith(each)]
    return group != "tests/e2e/", min(places, default=len(LONGEST))


class Together(LoadScopeScheduling):  # type: ignore[misc]  # it brings no types
    """Gives a worker whole groups."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    # Its own order is by how many tests a group has, whatever they take.
    config.option.loadscopereorder = False
    return Together(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the groups in their order; within one, chance decides as ever."""
    items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that is named as where a simulated fault is seen, and did not make it."""
    answer = yield
    if unmade := evidence.unmade(item.nodeid):
        pytest.fail(f"tests/simulation/evidence.py names it, and it does not make {unmade}")
    return answer
