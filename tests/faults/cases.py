"""Running lives side by side, each with one fault on its way in and one on its way out.

A life under faults, and what it is compared with. A fault on the way to Ready is over, and
has left nothing, before the one of the teardown begins, so that each is judged alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from tests.contract.cluster_worlds import VM, XR
from tests.e2e.deploy.place import Kind
from tests.faults.ground import Ground
from tests.faults.outcome import Outcome, outcome
from tests.faults.stagehand import Life, Way
from tests.faults.wire import Effect, Mode, Wire, effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Faultless:
    """A life that nothing befell.

    Attributes:
        provision: Its effects until it was Ready and at rest.
        teardown: Its effects from its deletion to its end.
        ready: What was left when it was Ready.
        gone: What was left at its end.
    """

    provision: Sequence[Effect]
    teardown: Sequence[Effect]
    ready: Outcome
    gone: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What befalls one life.

    Attributes:
        mode: What befalls both effects.
        provision: The effect on its way to Ready; None for none.
        teardown: The effect on its way out; None for none.
    """

    mode: Mode
    provision: Effect | None
    teardown: Effect | None


@asynccontextmanager
async def begun(ground: Ground, *, vm: Kind = VM, xr: Kind = XR) -> AsyncIterator[Life]:
    """Yield a life that was just declared; nothing of it is left afterwards."""
    life = Life(ground, Wire(), vm=vm, xr=xr)
    try:
        await life.begin()
        yield life
    finally:
        await life.clear()


async def faultless(ground: Ground, way: Way) -> Faultless:
    """Live one life without a fault."""
    async with begun(ground) as life:
        await life.until_ready()
        provision, ready = effects(life.wire.trail), await outcome(life)
        life.wire.begin()
        await life.delete(way)
        await life.until_gone()
        teardown, gone = effects(life.wire.trail), await outcome(life)
    return Faultless(provision=provision, teardown=teardown, ready=ready, gone=gone)


class Plain:
    """Lives that nothing befell, one of each way, lived once."""

    def __init__(self) -> None:
        self._lived: dict[Way, Faultless] = {}

    async def of(self, ground: Ground, way: Way) -> Faultless:
        """Return the one of a way."""
        if way not in self._lived:
            self._lived[way] = await faultless(ground, way)
        return self._lived[way]


async def live_all(ground: Ground, way: Way, plain: Faultless, cases: Iterable[Case]) -> None:
    """Live lives side by side; each must end as the faultless one did.

    Raises:
        ExceptionGroup: Of those that did not, with what befell each.
    """
    async with asyncio.TaskGroup() as group:
        for case in cases:
            group.create_task(_live(ground, way, plain, case))


async def fail_for_ever(life: Life, effect: Effect, rounds: int) -> None:
    """Refuse an effect each time it is asked for, for so many rounds, and then no more.

    Asserts what holds meanwhile: few tries, no harm, and words about it where it is the
    record's own trouble; an outage of Postgres is told by `/readyz`, not by each record.
    """
    life.wire.begin(Mode.EVER, effect)
    life.errors.clear()
    for _ in range(rounds):
        await life.round()
    assert life.wire.struck
    # One try a round, another one to say what failed, and one for each subject of an Event.
    assert life.wire.attempts <= 2 * rounds
    told = await life.reasons()
    life.wire.mend()
    if effect.label in UNTOLD or effect.label.startswith("COMMIT") or not life.errors:
        return
    assert "ReconcileFailed" in told, (told, life.errors)


UNTOLD: Final = frozenset({"POST events", "PATCH provisioningrecords/status"})
"""What nothing can be said of: Events are for people and may be lost, and the status is where
it would be said."""


async def _live(ground: Ground, way: Way, plain: Faultless, case: Case) -> None:
    try:
        async with begun(ground) as life:
            life.wire.begin(case.mode, case.provision)
            await life.until_ready()
            assert life.wire.befell is (case.provision is not None)
            assert await outcome(life) == plain.ready
            life.wire.begin(case.mode, case.teardown)
            await life.delete(way)
            await life.until_gone()
            assert life.wire.befell is (case.teardown is not None)
            assert await outcome(life) == plain.gone
    except Exception as error:
        error.add_note(f"{case.mode}: {case.provision} / {case.teardown}")
        raise
