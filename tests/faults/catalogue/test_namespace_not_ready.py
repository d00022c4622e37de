"""A Project's namespace leaves Ready: nothing more is given out, and what is there stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from function.contract import names
from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS = 4
PROVIDER_CONFIGS = "/apis/generic.crossplane.io/v1/namespaces/{}/providerconfigs"
RESTED = """
UPDATE plexsphere.bootstrap_tokens SET issued_at = issued_at - interval '31 seconds'
WHERE project_id = $1
"""
"""Half a minute lies between two generations."""
TOKENS = """
SELECT count(*), count(*) FILTER (WHERE revoked_at IS NOT NULL)
FROM plexsphere.bootstrap_tokens WHERE project_id = $1
"""
NODES = "SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE project_id = $1"


def place(life: Life, *, ready: bool) -> None:
    """Say whether the Project's namespace is Ready."""
    life.catalogue.place(replace(life.view, namespace_ready=ready))
    life.forget()


async def secrets(life: Life) -> list[str]:
    """Return the names of the token Secrets in the namespace."""
    listing = await life.find(f"/api/v1/namespaces/{life.namespace}/secrets") or {}
    return [
        item["metadata"]["name"]
        for item in listing["items"]
        if item["type"] == names.TOKEN_SECRET_TYPE
    ]


async def lose(life: Life) -> None:
    """Take away what was given out, before a machine took it."""
    for name in await secrets(life):
        await life.call("DELETE", f"/api/v1/namespaces/{life.namespace}/secrets/{name}")
    configs = PROVIDER_CONFIGS.format(life.namespace)
    for item in (await life.find(configs) or {})["items"]:
        await life.call(
            "PATCH", f"{configs}/{item['metadata']['name']}", {"metadata": {"labels": None}}
        )
        await life.call("DELETE", f"{configs}/{item['metadata']['name']}")
    await life.ground.pool.execute(RESTED, life.project)
    life.forget()


async def test_a_later_generation_is_not_given_out_until_the_namespace_is_ready_again(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.look()
        assert len(await secrets(life)) == 1
        await lose(life)

        place(life, ready=False)
        for _ in range(ROUNDS):
            await life.round()

        assert await secrets(life) == []
        assert (await life.find(PROVIDER_CONFIGS.format(life.namespace)) or {})["items"] == []
        assert tuple(await ground.pool.fetchrow(TOKENS, life.project)) == (1, 0)
        resource = await life.resource()
        assert resource is not None
        assert (resource.phase, resource.generation) == ("Pending", 1)
        assert "NamespaceNotReady" in await life.reasons()
        assert "Failed" not in await life.reasons()
        assert life.errors == []
        assert await life.round(), "it writes although nothing changes"

        place(life, ready=True)
        await life.until_ready()

        assert (await outcome(life)).objects["record"] == whole.ready.objects["record"]


async def test_a_node_stays_as_it_is_when_its_namespace_leaves_ready(ground: Ground) -> None:
    async with begun(ground) as life:
        await life.until_ready()
        before = await outcome(life)

        place(life, ready=False)
        for _ in range(ROUNDS):
            assert await life.round()

        assert await outcome(life) == before
        assert life.errors == []


async def test_a_lost_machine_keeps_its_node_while_the_namespace_is_not_ready(
    ground: Ground,
) -> None:
    async with begun(ground) as life:
        await life.until_ready()
        await life.make_again()
        for _ in range(ROUNDS):
            await life.round()
        assert "SubstrateLost" in await life.reasons()

        place(life, ready=False)
        await life.call("PATCH", life.path_of_record, {"spec": {"declaration": {"retry": 1}}})
        life.forget()
        for _ in range(ROUNDS):
            await life.round()

        assert [row[0] for row in await ground.pool.fetch(NODES, life.project)] == [True]
        assert await life.substrate() is not None
        assert "NamespaceNotReady" in await life.reasons()
