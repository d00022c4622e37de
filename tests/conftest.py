"""Which tests share a worker when several run side by side.

A folder's session fixtures (a control plane, a stack, a rendering) are dear: what uses one of them
stays together, so that each is made once, and no two whole stacks run at a time. Everything else
goes module by module.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = (
    "tests/e2e/deploy/",
    "tests/e2e/",
    "tests/faults/",
    "tests/integration/cloud/",
    "tests/integration/grpc/",
    "tests/render/",
)
"""Folders of which each makes something once for a whole session; the first that fits counts."""


class Together(LoadScopeScheduling):  # type: ignore[misc]  # it brings no types
    """Gives a worker whole groups."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return next((each for each in TOGETHER if module.startswith(each)), module)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return Together(config, log)
