"""What goes wrong around a node delays it at most: clocks, a flapping substrate, a namespace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import pytest

from reconciler.adapters.clock import SystemClock
from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.process import Process
from tests.faults.stagehand import Life, Way
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FLAPS: Final = 5
ROUNDS: Final = 4


@dataclass(frozen=True)
class Skewed:
    """A clock that differs from everybody else's."""

    by: timedelta

    def now(self) -> datetime:
        """Return what it takes for now."""
        return SystemClock().now() + self.by


@pytest.mark.parametrize("minutes", [-10, 10])
async def test_f34_a_reconciler_whose_clock_is_ten_minutes_off_ends_as_any(
    ground: Ground, plain: Plain, minutes: int
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        clock = Skewed(timedelta(minutes=minutes))
        life.process = Process(ground, life.catalogue, life.wire, clock)
        made(Kind.CLOCK_SKEW)

        await life.until_ready()
        ready = await outcome(life)
        await life.delete(Way.REPLACED)
        await life.until_gone()

        assert ready == whole.ready
        assert await outcome(life) == whole.gone


async def test_f55_a_substrate_that_flaps_is_one_ready_node(ground: Ground, plain: Plain) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.until_ready()
        phases = set()

        for _ in range(FLAPS):
            await life.call("PATCH", life.path_of_record, {"spec": {"observed": {"ready": False}}})
            made(Kind.FLAPS)
            life.forget()
            await life.round()
            resource = await life.resource()
            phases.add(None if resource is None else resource.phase.value)
            await life.until_ready()

        assert phases == {"Provisioning"}
        assert await outcome(life) == whole.ready


async def test_f58_a_namespace_that_is_not_ready_is_waited_for_by_name(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        _place(life, ready=False)

        for _ in range(ROUNDS):
            await life.round()
        assert "NamespaceNotReady" in await life.reasons()
        assert await life.substrate() is None

        _place(life, ready=True)
        await life.until_ready()
        assert await outcome(life) == whole.ready


def _place(life: Life, *, ready: bool) -> None:
    life.catalogue.place(replace(life.view, namespace_ready=ready))
    life.forget()
    made(Kind.NAMESPACE_NOT_READY)
