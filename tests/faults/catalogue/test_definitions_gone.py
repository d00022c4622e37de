"""A definition is taken away under a node: the node leaves the mesh, and the rest waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from function.contract import names
from tests.e2e.deploy.place import Kind, definition
from tests.faults.cases import begun
from tests.faults.ground import Ground
from tests.faults.stagehand import Life, Way
from tests.integration.load.agents import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LONE: Kind = (names.BLUEPRINTS_GROUP, "XLoneVM", "xlonevms")
"""A substrate's kind that no other test needs."""
LONE_XR: Kind = (names.BLUEPRINTS_GROUP, "XLoneNode", "xlonenodes")
"""Likewise a composite's."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED_S = 30.0
ROUNDS = 6
NODES = "SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE project_id = $1"


async def define(ground: Ground, kind: Kind) -> None:
    """Have a kind served; one that is served already stays."""
    await asyncio.to_thread(ground.admin.create, DEFINITIONS, definition(kind))
    await _until_served(ground, kind, True)


async def undefine(ground: Ground, kind: Kind) -> None:
    """Take a kind away with all of its objects, as break-glass."""
    path = f"{DEFINITIONS}/{kind[2]}.{kind[0]}"
    await asyncio.to_thread(ground.admin.delete, path)
    await _until_served(ground, kind, False)


async def _until_served(ground: Ground, kind: Kind, served: bool) -> None:
    path = f"/apis/{kind[0]}/v1alpha1/{kind[2]}"
    group = f"/apis/{kind[0]}/v1alpha1"

    async def is_so() -> bool:
        listing = await ground.viewer.get(group) or {}
        listed = any(item["kind"] == kind[1] for item in listing.get("resources") or [])
        # A new kind's storage takes a moment, in which it is answered with 429.
        answer = await asyncio.to_thread(ground.admin.get, path)
        return listed is served and answer.status == (200 if served else 404)

    await eventually(is_so, timeout_s=SERVED_S, what=f"{kind[1]} is served: {served}")


@asynccontextmanager
async def lone(ground: Ground) -> AsyncIterator[Life]:
    """Yield a Ready life whose kinds may be taken away."""
    for kind in (LONE, LONE_XR):
        await define(ground, kind)
    try:
        async with begun(ground, vm=LONE, xr=LONE_XR) as life:
            await life.until_ready()
            yield life
    finally:
        for kind in (LONE, LONE_XR):
            await undefine(ground, kind)


@pytest.mark.parametrize("gone", [LONE, LONE_XR], ids=["substrates", "composites"])
async def test_a_missing_definition_holds_no_node_in_the_mesh(ground: Ground, gone: Kind) -> None:
    async with lone(ground) as life:
        await undefine(ground, gone)
        life.forget()

        await life.delete(Way.REPLACED)
        for _ in range(ROUNDS):
            await life.round()

        resource, record = await life.resource(), await life.record()
        assert [row[0] for row in await ground.pool.fetch(NODES, life.project)] == [False]
        assert resource is not None
        assert resource.phase == "Deprovisioning"
        assert record is not None
        assert names.FINALIZER in record["metadata"]["finalizers"]
        told = {item["type"]: item for item in record["status"]["conditions"]}
        for condition in (told["Ready"], told["SubstrateDeleted"]):
            assert condition["reason"] == "KindNotServed"
            assert gone[1] in condition["message"]
            assert gone[0] in condition["message"]
        assert await life.round(), "it writes although nothing changes"

        await define(ground, gone)
        await life.until_gone()

        after = await life.resource()
        assert after is not None
        assert after.phase == "Deleted"
        assert await life.substrate() is None
