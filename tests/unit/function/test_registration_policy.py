"""What a blueprint or a step says of late nodes reaches the record, and nothing else."""

from __future__ import annotations

import pytest

from function import fn
from function.contract.conditions import ConditionType
from function.contract.errors import ContractError
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server

WANTED = {"policy": "Recreate", "timeout": "20m", "attempts": 2}


def test_a_blueprint_says_it_for_its_machines() -> None:
    found = given.required(blueprint=given.blueprint(registration=WANTED))

    outcome = given.answer(found=found)

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["declaration"]["registration"] == WANTED


def test_a_blueprint_that_says_nothing_declares_nothing() -> None:
    outcome = given.answer()

    assert outcome.record is not None
    assert "registration" not in outcome.record.manifest["spec"]["declaration"]


def test_a_blueprint_with_a_time_out_of_bounds_is_not_supported() -> None:
    found = given.required(blueprint=given.blueprint(registration={"timeout": "59s"}))

    admitted = given.verdict(given.answer(found=found), ConditionType.ADMITTED)

    assert (admitted.status, admitted.reason) == (False, "UnsupportedBlueprint")
    assert "registration.timeout" in admitted.message


def test_it_stays_as_it_was_accepted() -> None:
    found = given.required(
        blueprint=given.blueprint(registration=WANTED), token=given.secret(), substrate=None
    )

    outcome = given.answer(resources={"record": given.record(given.status())}, found=found)

    assert outcome.record is not None
    assert "registration" not in outcome.record.manifest["spec"]["declaration"]


def test_a_step_says_it_for_each_of_its_resources() -> None:
    world = World(entry(registration=WANTED), server=server())

    record = fn.plain(world.run().desired.resources["record-server"].resource)

    assert record["spec"]["declaration"]["registration"] == WANTED


def test_a_misspelt_word_of_a_step_is_an_error() -> None:
    world = World(entry(registration={"attemps": 2}), server=server())

    with pytest.raises(ContractError, match=r"registration\.attemps"):
        world.run()
