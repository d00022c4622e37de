"""A machine that is refused until its token ends: its provider's words are what is said."""

from __future__ import annotations

import copy
from typing import Any, Final, LiteralString

import pytest

from tests.faults.cases import begun
from tests.faults.ground import Ground
from tests.faults.stagehand import Life

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ENDED: Final[LiteralString] = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - interval '25 hours', expires_at = expires_at - interval '25 hours'
WHERE project_id = $1
"""
REFUSED: Final = {
    "type": "Synced",
    "status": "False",
    "reason": "ReconcileError",
    "message": "quota exceeded for instances",
    "lastTransitionTime": "2026-11-21T12:00:00Z",
}


async def ticked(life: Life) -> dict[str, dict[str, Any]]:
    """Do one tick of the record as it is; return its conditions by type."""
    raw = await life.record()
    assert raw is not None
    await life.process.tick.run(copy.deepcopy(raw))
    shown = await life.record()
    assert shown is not None
    return {item["type"]: item for item in shown["status"]["conditions"]}


async def test_a_token_that_ended_hides_nothing_of_what_the_substrate_says(ground: Ground) -> None:
    async with begun(ground) as life:
        await life.round()
        substrate = await life.substrate()
        assert substrate is not None
        machine = life.path(life.vm, substrate["metadata"]["name"])
        await life.call("PATCH", machine, {"status": {"conditions": [REFUSED]}})
        await life.call("PATCH", life.path_of_record, {"spec": {"observed": {"ready": False}}})
        waiting = await ticked(life)
        assert waiting["Stalled"]["status"] == "False"

        await ground.pool.execute(ENDED, life.project)
        said = (await ticked(life))["Stalled"]

        assert (said["status"], said["reason"]) == ("True", "ProvisioningTimeout")
        assert REFUSED["message"] in said["message"]
        assert "token has ended" in said["message"]
