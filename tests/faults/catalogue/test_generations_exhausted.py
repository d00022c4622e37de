"""One whose token went through all generations there are says so, and goes like any other."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest

from function.contract import names
from reconciler.domain.aggregate.invariants import GENERATION_MAX
from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS: Final = 4
LAST: Final[tuple[LiteralString, ...]] = (
    "UPDATE plexsphere.provisioned_resources SET generation = $2 WHERE project_id = $1",
    "UPDATE plexsphere.bootstrap_tokens SET generation = $2 WHERE project_id = $1",
)
TOKENS: Final = "SELECT generation FROM plexsphere.bootstrap_tokens WHERE project_id = $1"


async def at_the_last(life: Life) -> None:
    """Have the first token be the last one that there may be, with its Secret deleted."""
    record = await life.record()
    assert record is not None
    await life.process.tick.run(record)
    for statement in LAST:
        await life.ground.pool.execute(statement, life.project, GENERATION_MAX)
    first = names.token_secret_name(record["metadata"]["name"], 1)
    await life.call("DELETE", f"/api/v1/namespaces/{life.namespace}/secrets/{first}")


async def test_it_is_stalled_by_that_name_makes_no_machine_and_goes(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await at_the_last(life)

        for _ in range(ROUNDS):
            await life.round()

        record = await life.record()
        assert record is not None
        told = {item["type"]: item for item in record["status"]["conditions"]}
        assert life.errors == []
        for kind, status in (("Ready", "False"), ("Stalled", "True"), ("NodeRegistered", "False")):
            assert (told[kind]["status"], told[kind]["reason"]) == (status, "GenerationsExhausted")
        assert await life.round(), "it writes although nothing changes"
        assert await life.substrate() is None
        rows = await ground.pool.fetch(TOKENS, life.project)
        assert [row["generation"] for row in rows] == [GENERATION_MAX]
        await life.delete(Way.REPLACED)
        await life.until_gone()
        left = await outcome(life)
        assert left.objects == whole.gone.objects
        assert [row["status"] for row in left.rows["resources"]] == ["Deleted"]
