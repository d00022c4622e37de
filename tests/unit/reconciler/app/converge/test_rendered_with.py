"""A changed base URL reaches new nodes only, and a record says which one its document has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from function.contract.record import Enrolment
from function.contract.strategy import Phase
from tests.unit.reconciler.app.world import GONE, World

OLD = "https://old.example.org"
NEW = "https://new.example.org"


async def _ready() -> World:
    world = World(base_url=OLD)
    await world.until_ready()
    return world


def _reconfigured(world: World, **changes: Any) -> World:
    """Start the process anew with another base URL, on the same database and cluster."""
    return World(
        store=world.store, cluster=world.cluster, base_url=NEW, **{"raw": world.raw, **changes}
    )


async def test_a_node_keeps_the_url_that_its_document_was_rendered_with() -> None:
    world = _reconfigured(await _ready())

    await world.tick_until_quiet()

    assert world.status["enrolment"]["baseURL"] == OLD
    assert world.resource.rendered_with == Enrolment(base_url=OLD)


async def test_a_record_that_was_restored_without_its_status_tells_the_same() -> None:
    before = await _ready()
    raw = {key: value for key, value in before.raw.items() if key != "status"}
    world = _reconfigured(before, raw=raw)

    await world.tick_until_quiet()

    assert world.resource.phase is Phase.READY
    assert world.status["enrolment"]["baseURL"] == OLD


async def test_a_new_node_gets_the_new_url() -> None:
    world = _reconfigured(World())
    assert world.store.resources == {}

    await world.until_ready()

    assert world.status["enrolment"]["baseURL"] == NEW
    assert world.resource.rendered_with == Enrolment(base_url=NEW)


async def test_a_substrate_that_is_made_anew_gets_the_new_url() -> None:
    before = World(base_url=OLD)
    await before.tick_until_quiet()
    assert before.resource.phase is Phase.ENROLLING
    before.cluster.objects.clear()
    world = _reconfigured(before)
    world.raw["spec"]["observed"] = {"exists": False}

    await world.tick()
    assert world.status["enrolment"]["baseURL"] == NEW
    await world.until_ready()

    assert world.resource.rendered_with == Enrolment(base_url=NEW)


async def test_a_row_of_before_remembers_what_its_record_says() -> None:
    before = await _ready()
    stored = before.resource
    before.store.resources[stored.id] = replace(stored, rendered_with=None)
    world = _reconfigured(before)

    await world.tick_until_quiet()
    version = world.resource.version
    await world.tick()

    assert world.resource.rendered_with == Enrolment(base_url=OLD)
    assert world.resource.version == version


async def _failed(world: World) -> None:
    world.raw["spec"]["observed"] = {"exists": True, "ready": False, "failed": True}
    await world.tick()
    assert world.resource.phase is Phase.FAILED
    assert world.resource.rendered_with == Enrolment(base_url=OLD)


async def test_a_machine_that_is_made_anew_after_a_retry_gets_the_new_url() -> None:
    before = World(base_url=OLD)
    await before.tick_until_quiet()
    await _failed(before)
    before.cluster.objects.clear()
    world = _reconfigured(before)
    world.raw["spec"]["observed"] = {"exists": False}
    world.raw["spec"]["declaration"]["retry"] = 1

    await world.until_ready()

    assert world.status["enrolment"]["baseURL"] == NEW
    assert world.resource.rendered_with == Enrolment(base_url=NEW)


async def test_a_machine_that_outlives_its_retry_keeps_its_url() -> None:
    before = World(base_url=OLD)
    await before.tick_until_quiet()
    await _failed(before)
    restored = {key: value for key, value in before.raw.items() if key != "status"}
    world = _reconfigured(before, raw=restored)
    world.raw["spec"]["observed"] = {"exists": True, "ready": True}
    world.raw["spec"]["declaration"]["retry"] = 1

    await world.until_ready()

    assert world.status["enrolment"]["baseURL"] == OLD
    assert world.resource.rendered_with == Enrolment(base_url=OLD)


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "row-of-before"])
async def test_the_first_run_of_an_xr_applied_again_does_not_change_the_url(
    remembered: bool,
) -> None:
    before = await _ready()
    if not remembered:
        stored = before.resource
        before.store.resources[stored.id] = replace(stored, rendered_with=None)
    world = _reconfigured(before)
    world.raw["spec"]["observed"] = {"exists": False}

    await world.tick()

    assert world.status["enrolment"]["baseURL"] == OLD
    assert world.resource.rendered_with == Enrolment(base_url=OLD)


async def test_the_knobs_stay_through_a_teardown() -> None:
    world = await _ready()

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.resource.rendered_with == Enrolment(base_url=OLD)
