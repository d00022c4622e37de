"""Whatever becomes of a Project, what its namespace says of its records is put right."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from function.contract import names
from reconciler.app.project_tick import REFUSED_S, ProjectTick
from tests.fakes.memory import FrozenClock
from tests.unit.reconciler import samples

IDENTITY = UUID(str(samples.PROJECT))
NAMESPACE = names.project_namespace(IDENTITY)
PLACED = {"id": str(IDENTITY), "namespace": NAMESPACE}


class Gateway:
    """Knows no Domain, and keeps the last status."""

    status: dict[str, Any] | None = None

    def domain(self, _name: str) -> None:
        return None

    async def write_project_status(self, _raw: dict[str, Any], status: dict[str, Any]) -> None:
        self.status = status


class Counting:
    """A tick that notes which namespaces were counted."""

    def __init__(self) -> None:
        self.counted: list[str] = []
        self.gateway = Gateway()
        self.tick = ProjectTick(
            cast("Any", self.gateway),
            cast("Any", None),
            FrozenClock(samples.NOW),
            cluster="local",
            settle=self._settle,
        )

    async def _settle(self, namespace: str) -> None:
        self.counted.append(namespace)


def _project(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    spec = {"domainRef": {"name": "gone"}}
    return {"metadata": {"name": "shop", **metadata}, "spec": spec, "status": status}


async def test_one_that_goes_is_counted() -> None:
    counting = Counting()

    again = await counting.tick.run(_project(PLACED, deletionTimestamp="2026-01-01T00:00:00Z"))

    assert again is None
    assert counting.counted == [NAMESPACE]


async def test_one_that_is_refused_is_counted_once_it_was_placed() -> None:
    counting = Counting()

    assert await counting.tick.run(_project(PLACED)) == REFUSED_S
    assert await counting.tick.run(_project({})) == REFUSED_S

    assert counting.counted == [NAMESPACE]
    assert counting.gateway.status is not None


@pytest.mark.parametrize(
    "namespace",
    [
        "kube-system",
        names.project_namespace(UUID(int=1)),
        f"{NAMESPACE}/secrets/token",
        f"../{NAMESPACE}",
        "",
    ],
)
async def test_what_is_not_its_own_namespace_is_left_alone(namespace: str) -> None:
    counting = Counting()

    await counting.tick.run(_project({"id": str(IDENTITY), "namespace": namespace}))

    assert counting.counted == []
