"""Fault 52: a machine is deleted by hand, and a run in flight makes another one in its place."""

from __future__ import annotations

import pytest

from tests.contract.cluster_worlds import VM
from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS = 3
RESTED = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - interval '31 seconds', consumed_at = consumed_at - interval '31 seconds'
WHERE project_id = $1
"""
"""Half a minute lies between two generations."""
NODES = "SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE project_id = $1"


async def lost(life: Life) -> None:
    """Put another machine under a live node, and live on until that is known."""
    await life.until_ready()
    await life.make_again()
    for _ in range(ROUNDS):
        await life.round()
    assert "SubstrateLost" in await life.reasons()


async def test_f52_a_machine_made_in_the_place_of_a_nodes_own_is_not_taken_for_it(
    ground: Ground,
) -> None:
    async with begun(ground) as life:
        await lost(life)

        resource, substrate = await life.resource(), await life.substrate()
        assert resource is not None
        assert substrate is not None
        assert resource.phase == "Pending"
        assert resource.protected[0].uid not in (None, substrate["metadata"]["uid"])
        assert [row[0] for row in await ground.pool.fetch(NODES, life.project)] == [True]


@pytest.mark.parametrize("way", list(Way))
async def test_f52_its_deletion_takes_the_node_out_and_then_all_that_is_there(
    ground: Ground, way: Way
) -> None:
    async with begun(ground) as life:
        await lost(life)

        await life.delete(way)
        await life.until_gone()

        resource = await life.resource()
        assert resource is not None
        assert resource.phase == "Deleted"
        assert await life.find(life.path(VM, resource.xr_name)) is None
        assert [row[0] for row in await ground.pool.fetch(NODES, life.project)] == [False]


async def test_f52_raising_retry_makes_a_machine_with_a_node_of_its_own(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await lost(life)

        await ground.pool.execute(RESTED, life.project)
        retried = {"spec": {"declaration": {"retry": 1}}}
        await life.call("PATCH", life.path_of_record, retried)
        life.forget()
        await life.until_ready()

        resource, substrate = await life.resource(), await life.substrate()
        assert resource is not None
        assert substrate is not None
        assert resource.protected[0].uid == substrate["metadata"]["uid"]
        assert (await outcome(life)).objects["record"] == whole.ready.objects["record"]
        nodes = [row[0] for row in await ground.pool.fetch(NODES, life.project)]
        assert sorted(nodes) == [False, True]
