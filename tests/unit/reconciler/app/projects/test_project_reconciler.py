"""Whatever becomes of a Project, what its namespace says of its records is put right."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

import pytest

from function.contract import names
from function.contract.catalog.tenancy import DomainSpec
from reconciler.app.projects.project_reconciler import REFUSED_S, ProjectReconciler
from reconciler.domain.aggregate.errors import StaleAggregateError
from tests.fakes.identity import InMemoryTenancyRepository
from tests.fakes.memory import FrozenClock, MemoryStore
from tests.fakes.project_gateway import InMemoryProjectGateway
from tests.unit.reconciler import samples

IDENTITY = UUID(str(samples.PROJECT))
NAMESPACE = names.project_namespace(IDENTITY)
PLACED = {"id": str(IDENTITY), "namespace": NAMESPACE}


class Counting:
    """A tick that notes which namespaces were counted."""

    def __init__(self) -> None:
        self.counted: list[str] = []
        self.refuses = False
        self.gateway = InMemoryProjectGateway()
        self.tick = ProjectReconciler(
            self.gateway,
            InMemoryTenancyRepository(MemoryStore()),
            FrozenClock(samples.NOW),
            cluster="local",
            settle=self._settle,
        )

    async def run(self, status: dict[str, Any], **metadata: Any) -> float | None:
        """Tick on the Project as it is now, with this status."""
        self.gateway.projects["shop"] = _project(status, **metadata)
        return await self.tick.run(copy.deepcopy(self.gateway.projects["shop"]))

    async def _settle(self, namespace: str) -> None:
        self.counted.append(namespace)
        if self.refuses:
            raise StaleAggregateError(namespace)


def _project(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    spec = {"domainRef": {"name": "gone"}}
    return {"metadata": {"name": "shop", **metadata}, "spec": spec, "status": status}


async def test_one_that_goes_is_counted() -> None:
    counting = Counting()

    again = await counting.run(PLACED, deletionTimestamp="2026-01-01T00:00:00Z")

    assert again is None
    assert counting.counted == [NAMESPACE]


async def test_one_that_is_refused_is_counted_once_it_was_placed() -> None:
    counting = Counting()

    assert await counting.run(PLACED) == REFUSED_S
    assert await counting.run({}) == REFUSED_S

    assert counting.counted == [NAMESPACE]
    assert len(counting.gateway.written) == 2


async def test_one_that_nobody_wrote_to_before_is_refused_in_its_status() -> None:
    counting = Counting()
    new = _project({})
    del new["status"]
    counting.gateway.projects["shop"] = new

    assert await counting.tick.run(copy.deepcopy(new)) == REFUSED_S

    assert [list(status) for status in counting.gateway.written] == [["conditions"]]


async def test_one_that_nobody_wrote_to_before_is_placed() -> None:
    counting = Counting()
    counting.gateway.domains["gone"] = DomainSpec.model_validate({"meshCIDR": "100.64.0.0/16"})
    new = _project({})
    del new["status"]
    counting.gateway.projects["shop"] = new

    await counting.tick.run(copy.deepcopy(new))

    assert [status["namespacePhase"] for status in counting.gateway.written] == ["Ready"]


async def test_one_that_is_refused_keeps_what_it_was_given() -> None:
    counting = Counting()

    await counting.run(PLACED)

    (status,) = counting.gateway.written
    assert status.items() >= PLACED.items()


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

    await counting.run({"id": str(IDENTITY), "namespace": namespace})

    assert counting.counted == []


async def test_nobody_hears_that_it_is_ready_before_its_namespace_was_settled() -> None:
    counting = Counting()
    counting.gateway.domains["gone"] = DomainSpec.model_validate({"meshCIDR": "100.64.0.0/16"})
    counting.refuses = True

    with pytest.raises(StaleAggregateError):
        await counting.run({})
    told = list(counting.gateway.written)
    counting.refuses = False
    await counting.run({})

    assert told == []
    assert [status["namespacePhase"] for status in counting.gateway.written] == ["Ready"]


@pytest.mark.parametrize(
    ("terminates", "said"),
    [
        (False, ("True", "Admitted", "The namespace is ready.")),
        (True, ("False", "NamespaceNotReady", "The namespace is terminating.")),
    ],
)
async def test_its_condition_says_what_its_namespace_does(
    terminates: bool, said: tuple[str, str, str]
) -> None:
    counting = Counting()
    counting.gateway.domains["gone"] = DomainSpec.model_validate({"meshCIDR": "100.64.0.0/16"})
    if terminates:
        await counting.run({})
        (name,) = counting.gateway.namespaces
        counting.gateway.namespaces[name] = True

    await counting.run({})

    (ready,) = counting.gateway.written[-1]["conditions"]
    assert (ready["status"], ready["reason"], ready["message"]) == said
