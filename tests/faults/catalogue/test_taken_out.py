"""A node that somebody takes out of the mesh past its record, by a hand in the database."""

from __future__ import annotations

from typing import Final

import pytest
from uuid_utils.compat import uuid7

from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Way

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS: Final = 4
SAID: Final = {
    "Ready": ("False", "DeregisteredElsewhere"),
    "Stalled": ("True", "DeregisteredElsewhere"),
    "NodeRegistered": ("False", "DeregisteredElsewhere"),
}


async def test_it_is_called_that_and_its_machine_goes_in_order_when_a_person_says_so(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.until_ready()
        resource = await life.resource()
        assert resource is not None

        await ground.pool.execute("SELECT plexsphere.take_out_node($1, $2)", resource.id, uuid7())
        for _ in range(ROUNDS):
            await life.round()

        record = await life.record()
        assert record is not None
        told = {item["type"]: item for item in record["status"]["conditions"]}
        assert {kind: (told[kind]["status"], told[kind]["reason"]) for kind in SAID} == SAID
        assert "to have the machine recreated" in told["Stalled"]["message"]
        assert await life.substrate() is not None
        assert await life.round(), "it writes although nothing changes"
        await life.delete(Way.REPLACED)
        await life.until_gone()
        assert await outcome(life) == whole.gone
