"""A record that vanished, and a process that dies between `Deleted` and what comes after it.

No record comes back to what is left then, nor does a Project that was deleted before: the sweep
of the next start finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import pytest

from reconciler.app.driver import Driver
from reconciler.app.local_view import LocalView
from reconciler.app.project_tick import ProjectTick
from tests.faults.cases import begun
from tests.faults.ground import Ground
from tests.faults.outcome import Outcome, outcome
from tests.faults.stagehand import Life
from tests.faults.wire import Effect, Mode, effects
from tests.unit.reconciler import samples

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROUNDS_MAX: Final = 20
SWEEPS: Final = 3
ROW: Final = "COMMIT provisioned_resources"
"""How a commit is called that changes the aggregate; the last one of a life stores `Deleted`."""


async def lived(ground: Ground, killed_after: Effect | None) -> tuple[Sequence[Effect], Outcome]:
    """Live a life whose record and XR vanish; return the effects of its end, and what is left.

    Args:
        ground: Where.
        killed_after: The effect that its process dies of; then another one starts and sweeps.
    """
    async with begun(ground) as life:
        await life.until_ready()
        life.wire.begin(Mode.KILL_AFTER if killed_after else None, killed_after)
        await life.vanish()
        await until_deleted(life)
        trail = effects(life.wire.trail)
        assert life.wire.befell is (killed_after is not None)
        if killed_after is not None:
            await start(life)
        return trail, await outcome(life)


async def until_deleted(life: Life) -> None:
    """Take it down, step by step, until it is stored as Deleted."""
    for _ in range(ROUNDS_MAX):
        await life.round()
        resource = await life.resource()
        if resource is not None and resource.phase == "Deleted":
            return
    pytest.fail(f"it does not end: {life.errors}")


async def start(life: Life) -> None:
    """Sweep as a fresh process does, in a cluster without a record and without a Project."""
    life.wire.begin()
    driver = Driver(
        view=LocalView(records=dict, projects=dict),
        repository=life.process.repository,
        tick=life.process.tick,
        teardown=life.process.teardown,
        project_tick=cast("ProjectTick", None),
        cluster_id=samples.CLUSTER,
    )
    for _ in range(SWEEPS):
        await driver.sweep_records()
        await driver.queue.settle()


async def test_a_kill_at_deleted_or_after_it_leaves_what_a_life_without_one_leaves(
    ground: Ground,
) -> None:
    trail, whole = await lived(ground, None)
    deleted = max(place for place, effect in enumerate(trail) if effect.label.startswith(ROW))
    assert len(trail[deleted:]) > 1, "nothing comes after it"

    for effect in trail[deleted:]:
        _, left = await lived(ground, effect)
        assert left == whole, effect
