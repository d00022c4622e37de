"""Faults 12 and 13: an API server that refuses every write once, and conflicts on every write."""

from __future__ import annotations

from collections import Counter

import pytest

from reconciler.adapters.kubernetes.transport.client import KubernetesError
from reconciler.domain.aggregate.errors import StaleAggregateError
from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

TOUCHED = "tests.plexsphere.com/touched"


class Refusing:
    """Refuses each write the first time, as a server under load does."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.seen: Counter[tuple[str, str]] = Counter()

    async def __call__(self, method: str, path: str) -> None:
        self.seen[method, path] += 1
        if self.seen[method, path] == 1:
            raise KubernetesError(
                attempted=f"{method} {path}", status=self.status, reason="Busy", detail=""
            )


class Meddling:
    """Somebody who writes to each object just before the broker does, the first time.

    The conflicts are the API server's own.
    """

    def __init__(self, life: Life) -> None:
        self.life = life
        self.touched: Counter[str] = Counter()

    async def __call__(self, method: str, path: str) -> None:
        if method == "POST":
            return
        path = path.removesuffix("/status")
        self.touched[path] += 1
        if self.touched[path] % 2 == 1:
            body = {"metadata": {"annotations": {TOUCHED: str(self.touched[path])}}}
            await self.life.call("PATCH", path, body)
            made(Kind.CONFLICTS)


async def live(ground: Ground, plain: Plain, way: Way, *, refuse: int | None) -> Life:
    """Live a life under it and return it; it ends as one that nothing befell."""
    whole = await plain.of(ground, way)
    async with begun(ground) as life:
        life.wire.meddle = Meddling(life) if refuse is None else Refusing(refuse)
        await life.until_ready()
        assert await outcome(life) == whole.ready
        await life.delete(way)
        await life.until_gone()
        assert await outcome(life) == whole.gone
        return life


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_f12_a_server_that_refuses_every_write_once_delays_and_changes_nothing(
    ground: Ground, plain: Plain, status: int
) -> None:
    life = await live(ground, plain, Way.REPLACED, refuse=status)

    assert len(life.errors) >= 10


@pytest.mark.parametrize("way", Way)
async def test_f13_a_conflict_on_every_write_changes_nothing(
    ground: Ground, plain: Plain, way: Way
) -> None:
    life = await live(ground, plain, way, refuse=None)

    assert isinstance(life.wire.meddle, Meddling)
    assert len(life.wire.meddle.touched) >= 5
    refused = [error for error in life.errors if isinstance(error, StaleAggregateError)]
    assert len(refused) >= 10
