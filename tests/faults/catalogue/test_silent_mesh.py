"""A mesh that does not answer, and a person who gives the node up: what is said, and what goes.

The identity side is Postgres; its nodes are locked away, and everything else of it answers.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg
import pytest

from function.contract import names
from tests.faults.cases import begun
from tests.faults.ground import Ground
from tests.faults.stagehand import Life, Way

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS: Final = 3
ROUNDS_MAX: Final = 20
PATIENCE: Final = "300ms"
"""How long a statement waits for what is locked; ours otherwise wait ten seconds."""
REASON: Final = "OPS-17: the mesh is gone for good"
WISH: Final = {"metadata": {"annotations": {names.ANNOTATION_FORCE_RELEASE: REASON}}}

UNHELD: Final = "PATCH provisioningrecords"
"""The last one takes the finalizer off."""


@asynccontextmanager
async def silence(ground: Ground, dsn: str) -> AsyncIterator[None]:
    """Let nobody read or write a node meanwhile."""
    own = await asyncpg.connect(dsn)
    name = await own.fetchval("SELECT quote_ident(current_database())")
    try:
        await own.execute(f"ALTER DATABASE {name} SET lock_timeout = '{PATIENCE}'")
        await ground.pool.expire_connections()
        async with own.transaction():
            await own.execute("LOCK TABLE plexsphere.nodes IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await own.execute(f"ALTER DATABASE {name} RESET lock_timeout")
        await ground.pool.expire_connections()
        await own.close()


async def told(life: Life) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition of the record; of one that is gone, none."""
    status = ((await life.record()) or {}).get("status") or {}
    said = status.get("conditions") or []
    return {item["type"]: (item["status"], item["reason"]) for item in said}


async def warned(life: Life) -> dict[str, str]:
    """Return what Events of type Warning say of a node that was given up, by what they are of."""
    found = await life.find(f"/api/v1/namespaces/{life.namespace}/events") or {"items": []}
    return {
        item["involvedObject"]["kind"]: item["message"]
        for item in found["items"]
        if (item["reason"], item["type"]) == ("ForceReleased", "Warning")
    }


async def until_gone(life: Life) -> set[tuple[str, str]]:
    """Live on until the record is gone; return all that `NodeRegistered` said meanwhile."""
    said: set[tuple[str, str]] = set()
    for _ in range(ROUNDS_MAX):
        await life.round()
        conditions = await told(life)
        if not conditions:
            return said
        said.add(conditions["NodeRegistered"])
    pytest.fail(f"it does not go: {life.errors}")


@pytest.mark.parametrize("way", list(Way))
async def test_a_node_is_given_up_in_words_and_in_order_though_the_mesh_does_not_answer(
    ground: Ground, database: str, way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    async with begun(ground) as life:
        await life.until_ready()
        async with silence(ground, database):
            await life.delete(way)
            for _ in range(ROUNDS):
                await life.round()
            waiting, substrate = await told(life), await life.substrate()
            assert waiting["NodeRegistered"] == ("Unknown", "MeshSilent")
            assert waiting["Ready"] == ("False", "NodeDeregistrationFailed")
            assert any("is unreachable" in message for message in await life.messages())
            assert substrate is not None
            assert "deletionTimestamp" not in substrate["metadata"]

            life.given_up = True
            life.wire.begin()
            await life.call("PATCH", life.path_of_record, WISH)
            life.forget()
            with caplog.at_level(logging.WARNING):
                said = await until_gone(life)
            trail = list(life.wire.trail)

        assert said == {("Unknown", "ForceReleased")}
        events = await warned(life)
        assert events.keys() == {names.RECORD_KIND, life.xr[1]}
        assert all(REASON in message for message in events.values())
        audited = next(place for place, label in enumerate(trail) if "broker_audit" in label)
        event = trail.index("POST events")
        going = next(place for place, label in enumerate(trail) if label.endswith(life.vm[2]))
        assert audited < event < going < len(trail) - 1
        assert trail[-1] == UNHELD
        assert await life.substrate() is None
        (left,) = [item.message for item in caplog.records if "node_left_in_mesh" in item.message]
        resource = await life.resource()
        assert resource is not None
        assert str(resource.id) in left
        assert resource.phase == "Deleted"
        live = "SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE project_id = $1"
        assert await ground.pool.fetchval(live, life.project)
