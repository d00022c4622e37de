"""Which tests share a worker when several run side by side, what begins first, and what one shows.

What a folder shares (a control plane, a stack, a rendering) is dear: what uses one of them stays
together, so that each is made once. Everything else goes module by module. Of the end-to-end
tests, those of many lives at once begin at once, and those of few have a stack of their own, which
begins so late that both workers end together: two stacks with many lives would each cost the
other's XRs their breakers' tokens. Beside them go the others, the longest first, so that no worker
is left alone with a long one at the end.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.simulation import evidence

BESIDE: Final = ("tests/e2e/test_controlplane.py", "tests/e2e/test_existing_cluster.py")
"""Modules of a folder of `TOGETHER` that have a control plane of their own, and no lives on it."""

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# How long an example takes is the machine's; no test holds a time.
settings.load_profile("unhurried")

MANY: Final = "tests/e2e/"
"""The group of the end-to-end tests that lead many lives at once."""

FEW: Final = "tests/e2e/few"
"""The group of those that lead a few: the modules of `OF_FEW`."""

OF_FEW: Final = tuple(
    f"tests/e2e/test_{each}.py"
    for each in (
        *("bad_input", "breaker", "canary", "definitions", "force_release", "orphans", "packages"),
        *("registration_timeout", "runbook_deletion", "runbook_enrolment", "runbook_provisioning"),
        *("substrates_lost",),
    )
)

TOGETHER: Final = (
    "tests/e2e/deploy/",
    MANY,
    "tests/faults/",
    "tests/integration/cloud/",
    "tests/integration/grpc/",
    "tests/render/",
)
"""Folders of which each makes something once for all its tests; the first that fits counts."""

LONGEST: Final = (
    MANY,
    "tests/simulation/",
    "tests/faults/",
    FEW,
    "tests/e2e/deploy/",
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
    if module in OF_FEW:
        return FEW
    return next((each for each in TOGETHER if module.startswith(each)), module)


def rank(nodeid: str) -> int:
    """Tell how late a test's group begins, by the longest name that it begins with."""
    group = scope(nodeid)
    fitting = [each for each in LONGEST if group.startswith(each)]
    return LONGEST.index(max(fitting, key=len)) if fitting else len(LONGEST)


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
