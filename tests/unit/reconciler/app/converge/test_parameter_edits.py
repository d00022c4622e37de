"""An edit of parameters: free before there is a machine, and by the blueprint's leave after."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.conditions import ConditionType, find
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.ports.cluster.substrates import LiveObject
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import World


def _blueprint(**disk: Any) -> BlueprintVersionSpec:
    body = samples.BLUEPRINT.model_dump(by_alias=True, exclude_none=True)
    body["parameters"] = [body["parameters"][0], {**body["parameters"][1], **disk}]
    return BlueprintVersionSpec.model_validate(body)


def _declare(world: World, **parameters: Any) -> None:
    declaration = world.raw["spec"]["declaration"]
    declaration["parameters"] = {**declaration["parameters"], **parameters}


async def _refusal(world: World) -> tuple[str, str] | None:
    await world.tick()
    told = find(world.status, ConditionType.ADMITTED)
    assert told is not None
    return None if told.status == "True" else (told.reason, told.message)


async def test_another_default_of_an_older_function_reaches_no_live_machine() -> None:
    world = World()
    await world.until_ready()
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = _blueprint(default=400)
    _declare(world, diskSizeGb=400)

    refusal = await _refusal(world)

    assert refusal is not None
    assert refusal[0] == "Immutable"
    assert refusal[1].startswith(
        "spec.parameters.diskSizeGb: cannot change while the machine exists"
    )
    assert world.resource.accepted.parameters == samples.DECLARATION.parameters
    assert world.status["accepted"]["parameters"] == samples.DECLARATION.parameters


async def test_other_edits_pass_although_the_blueprint_is_another_by_now() -> None:
    world = World()
    await world.until_ready()
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = _blueprint(default=400, minimum=300)
    world.raw["spec"]["declaration"]["labels"] = {"team": "desk"}

    assert await _refusal(world) is None
    assert world.resource.accepted.labels == {"team": "desk"}
    assert world.resource.accepted.parameters == samples.DECLARATION.parameters


async def test_a_mutable_parameter_changes_on_a_live_machine_within_its_limits() -> None:
    world = World()
    await world.until_ready()
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = _blueprint(mutable=True, maximum=500)
    _declare(world, diskSizeGb=501)
    refusal = await _refusal(world)
    assert refusal is not None
    assert refusal[0] == "InvalidParameters"

    _declare(world, diskSizeGb=80)

    assert await _refusal(world) is None
    assert world.status["accepted"]["parameters"]["diskSizeGb"] == 80


async def test_before_there_is_a_machine_an_edit_is_free() -> None:
    world = World()
    await world.tick()
    _declare(world, region="fsn1", diskSizeGb=80)

    assert await _refusal(world) is None
    assert world.resource.accepted.parameters == {"region": "fsn1", "diskSizeGb": 80}


@pytest.mark.parametrize(("terminating", "reason"), [(False, "Immutable"), (True, None)])
async def test_a_machine_that_the_record_does_not_show_is_looked_for(
    terminating: bool, reason: str | None
) -> None:
    world = World()
    await world.tick()
    (protected,) = world.resource.protected
    _stand(world, protected, terminating=terminating)
    _declare(world, region="fsn1")

    refusal = await _refusal(world)

    assert (refusal and refusal[0]) == reason


def _stand(world: World, protected: ProtectedObject, *, terminating: bool) -> None:
    reference = protected.reference
    key = (reference.api_version, reference.kind, reference.name)
    world.cluster.objects[key] = LiveObject(uid="u", terminating=terminating, released=False)
