"""A record that vanished, and a process that dies between `Deleted` and what comes after it.

No record comes back to what is left then, nor does a Project that was deleted before: the sweep
of the next start finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, cast

import pytest

from function.contract import names
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.projects.project_reconciler import ProjectReconciler
from tests.contract.cluster_worlds import RECORD
from tests.e2e.deploy.place import held, manifest
from tests.faults.cases import begun
from tests.faults.catalogue.test_contested import SHARED, enrolled
from tests.faults.ground import Ground
from tests.faults.outcome import Outcome, outcome
from tests.faults.process import Process
from tests.faults.stagehand import Life
from tests.faults.wire import Effect, KilledError, Mode, effects
from tests.unit.reconciler import samples

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROUNDS_MAX: Final = 20
SWEEPS: Final = 3
DELETED: Final = "COMMIT provisioned_resources provisioned_resource_outbox_token outbox_events"
"""The commit that stores a later phase with its event."""
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


async def missing(life: Life, name: str) -> None:
    """Take a record and its composite away, past the record's finalizer."""
    record = life.path(RECORD, name)
    await life.call("DELETE", life.path(life.xr, name))
    await life.call("PATCH", record, {"metadata": {"finalizers": None}})
    await life.call("DELETE", record)


async def torn_down(life: Life) -> None:
    """Take its one aggregate down, step by step."""
    for _ in range(ROUNDS_MAX):
        resource = await life.resource()
        assert resource is not None
        await life.process.teardown.run_missing(resource)


async def is_held(life: Life) -> bool:
    """Tell whether the sibling has the hold; one that is gone has none."""
    found = await life.find(life.path(life.vm, SHARED)) or {"metadata": {}}
    return (found["metadata"].get("labels") or {}).get(names.LABEL_HOLD) == "true"


async def start(life: Life) -> None:
    """Sweep as a fresh process does, in a cluster without a record and without a Project."""
    life.wire.begin()
    life.process = Process(life.ground, life.catalogue, life.wire)
    driver = Controller(
        view=ClusterView(records=dict, projects=dict),
        repository=life.process.repository,
        reconciler=life.process.tick,
        teardown=life.process.teardown,
        project_reconciler=cast("ProjectReconciler", None),
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


async def test_a_sibling_that_a_kill_at_deleted_left_held_is_let_go(ground: Ground) -> None:
    async with begun(ground) as life:
        await enrolled(life, "pool")
        network = manifest(life.vm, SHARED, labels=held())
        path = life.path(life.vm, SHARED).rpartition("/")[0]
        assert (await asyncio.to_thread(ground.crossplane.create, path, network)).ok
        await missing(life, "pool")
        life.wire.begin(Mode.KILL_AFTER, Effect(label=DELETED))
        with pytest.raises(KilledError):
            await torn_down(life)
        left = await life.resource()
        assert left is not None
        assert left.phase == "Deleted"
        assert await is_held(life)

        await start(life)

        assert not await is_held(life)
        settled = await life.resource()
        assert settled is not None
        assert all(item.released for item in settled.protected[1:])
