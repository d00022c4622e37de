"""Faults 66 and 67: a declaration that never rests, and a catalogue that forgets."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

EDITS = 12


async def edit(life: Life, number: int, **declaration: Any) -> None:
    """Change what is declared, as the function hands it on."""
    changed = declaration or {"labels": {"team": f"team-{number}"}}
    await life.call("PATCH", life.path_of_record, {"spec": {"declaration": changed}})
    life.forget()
    made(Kind.EDIT)


async def test_f66_a_declaration_that_changes_with_every_round_still_becomes_one_node(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        for number in range(EDITS):
            await edit(life, number)
            await life.round()
        await life.until_ready()

        resource = await life.resource()
        assert resource is not None
        assert resource.accepted.labels == {"team": f"team-{EDITS - 1}"}
        assert await outcome(life) == whole.ready


async def test_f66_a_declaration_that_changes_during_teardown_changes_nothing_of_it(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.until_ready()
        await life.delete(Way.REPLACED)
        for number in count():
            if await life.record() is None:
                break
            await edit(life, number)
            await life.round()
        await life.until_gone()

        assert await outcome(life) == whole.gone


async def test_f66_what_makes_it_the_same_node_cannot_be_changed(ground: Ground) -> None:
    async with begun(ground) as life:
        await life.until_ready()

        with pytest.raises(AssertionError, match="is immutable"):
            await edit(life, 0, blueprint={"name": "another", "version": "v1alpha1"})


async def test_f67_a_blueprint_that_is_withdrawn_under_a_node_neither_harms_nor_holds_it(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.until_ready()

        life.catalogue.forget()
        made(Kind.BLUEPRINT_GONE)
        for _ in range(3):
            await life.round()
        kept = await outcome(life)
        await life.delete(Way.REPLACED)
        await life.until_gone()

        assert kept == whole.ready
        assert await outcome(life) == whole.gone


@pytest.mark.parametrize("accepted", [False, True])
async def test_f67_a_blueprint_that_is_withdrawn_on_the_way_is_waited_for_or_not_needed(
    ground: Ground, plain: Plain, accepted: bool
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        if accepted:
            await life.look()
        assert (await life.resource() is not None) == accepted
        assert await life.substrate() is None

        life.catalogue.forget()
        for _ in range(6):
            await life.round()
        waits = "BlueprintNotFound" in await life.reasons()
        made_it = await life.substrate() is not None
        life.catalogue.remember()
        life.forget()
        await life.until_ready()

        assert (waits, made_it) == (not accepted, accepted)
        assert await outcome(life) == whole.ready
