"""What a former leader sends late changes nothing: not one request, and no commit.

At each effect of a life the process stops for good, with the request built and not sent;
another one, in a later term, finishes what it began. Then the request is sent after all, once
at the next rest of the life, and once at its end. Fault 4 of the catalogue, between check and
write; a real SIGSTOP of the whole process is in `test_failover`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from dev.controlplane import ControlPlane
from reconciler.adapters.kubernetes.transport.client import KubernetesError
from tests.fakes.databases import migrated_database
from tests.faults.cases import Faultless, faultless
from tests.faults.ground import Ground, grounded
from tests.faults.outcome import Outcome, outcome
from tests.faults.stagehand import Life, Way
from tests.faults.wire import Effect, KilledError, Wire
from tests.integration.load.agents import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

BATCH: Final = 6
"""Lives side by side: more would only wait for each other."""
SETTLED_S: Final = 60.0
"""How long the collector may take to see that an owner is gone."""
REFUSED: Final = frozenset({404, 409, 422})
"""Gone, not what was read any more, or another one by now."""
TOKEN: Final = "POST secrets"
"""A token that comes late was succeeded by another one, and was revoked when that was consumed:
its Secret is there until the record goes, and opens nothing."""
LEFT: Final = frozenset({"POST providerconfigs", "POST externalsecrets"})
"""What a late creation leaves after the last user went: unused, and deleted or used by the next
one (docs/decisions/0015, "What is left")."""


@dataclass(slots=True)
class LateWire(Wire):
    """A wire that stops the process before one request, which may be sent later."""

    chosen: Effect | None = None
    late: Callable[[], Awaitable[Any]] | None = None
    _met: int = 0

    async def effect(
        self,
        label: str,
        act: Callable[[], Awaitable[Any]],
        *,
        refusal: Exception,
        silence: Exception,
    ) -> Any:
        """Do an effect, or stop before it."""
        if self.chosen is not None and self.late is None and label == self.chosen.label:
            self._met += 1
            if self._met == self.chosen.nth:
                self.late = act
                raise KilledError
        return await act()

    async def send(self) -> None:
        """Send what was kept back; the API server may refuse it."""
        assert self.late is not None
        try:
            await self.late()
        except KubernetesError as error:
            if error.status not in REFUSED:
                raise


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with migrated_database() as dsn:
        yield dsn


@pytest.fixture
async def ground(control_plane: ControlPlane, database: str) -> AsyncIterator[Ground]:
    async with grounded(control_plane, database) as opened:
        yield opened


def requests(effects: Sequence[Effect]) -> list[Effect]:
    """Return those that go to the API server; Events are for people and may come late."""
    return [
        each
        for each in effects
        if not each.label.startswith("COMMIT") and "events" not in each.label
    ]


async def test_fault_04_a_late_request_on_the_way_to_ready_changes_nothing(ground: Ground) -> None:
    plain = await faultless(ground, Way.REPLACED)
    chosen = requests(plain.provision)
    assert len(chosen) > 5

    await _all([_provision(ground, plain, effect) for effect in chosen])


@pytest.mark.parametrize("way", Way)
async def test_fault_06_a_late_request_of_a_teardown_changes_nothing(
    way: Way, ground: Ground
) -> None:
    plain = await faultless(ground, way)
    chosen = requests(plain.teardown)
    assert len(chosen) > 5

    await _all([_teardown(ground, plain, way, effect) for effect in chosen])


@asynccontextmanager
async def _stopped(ground: Ground, effect: Effect | None) -> AsyncIterator[tuple[Life, LateWire]]:
    """Yield a life whose process stops at an effect."""
    wire = LateWire(chosen=effect)
    life = Life(ground, wire)
    try:
        await life.begin()
        yield life, wire
    except Exception as error:
        error.add_note(f"late: {wire.chosen}")
        raise
    finally:
        await life.clear()


async def _all(lives: Sequence[Awaitable[None]]) -> None:
    """Live some at a time."""
    gate = asyncio.Semaphore(BATCH)

    async def one(life: Awaitable[None]) -> None:
        async with gate:
            await life

    async with asyncio.TaskGroup() as group:
        for life in lives:
            group.create_task(one(life))


async def _provision(ground: Ground, plain: Faultless, effect: Effect) -> None:
    async with _stopped(ground, effect) as (life, wire):
        await life.until_ready()
        await wire.send()
        await life.until_ready()
        found = await outcome(life)
        assert found.rows == plain.ready.rows
        assert effect.label == TOKEN or found.objects == plain.ready.objects
        await life.delete(Way.REPLACED)
        await life.until_gone()
        await wire.send()
        if effect.label not in LEFT:
            await _comes_to(life, plain.gone)


async def _teardown(ground: Ground, plain: Faultless, way: Way, effect: Effect) -> None:
    async with _stopped(ground, None) as (life, wire):
        await life.until_ready()
        wire.chosen = effect
        await life.delete(way)
        while wire.late is None:
            await life.round()
        await life.round()
        await wire.send()
        await life.until_gone()
        assert await outcome(life) == plain.gone
        await wire.send()
        await _comes_to(life, plain.gone)


async def _comes_to(life: Life, wanted: Outcome) -> None:
    """Wait until nothing is left but what is wanted: the collector takes what has no owner."""

    async def fits() -> bool:
        return await outcome(life) == wanted

    try:
        await eventually(fits, timeout_s=SETTLED_S, what="the same end")
    except AssertionError:
        assert await outcome(life) == wanted
        raise
