"""Faults 18 and 21: rights that are taken away in mid-flight, and a quota that is used up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Life, Way
from tests.integration.load.agents import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ROUNDS = 8
REFUSALS = 3
"""Times eight failures, each half a minute after the one before, as the database sees it."""
TOKENS = "SELECT count(*) FROM plexsphere.bootstrap_tokens WHERE project_id = $1"
COUNTED_S = 60.0
"""The controller of quotas counts within a second."""


@asynccontextmanager
async def without_rights(life: Life) -> AsyncIterator[None]:
    """Take every binding of the reconciler's account away, and give them back."""
    taken = [
        binding
        for binding in (await life.find(BINDINGS) or {})["items"]
        if any(one["name"] == "provisioning-broker" for one in binding.get("subjects") or [])
    ]
    assert taken
    for binding in taken:
        await life.call("DELETE", f"{BINDINGS}/{binding['metadata']['name']}")
    try:
        yield
    finally:
        for binding in taken:
            kept = {key: binding["metadata"].get(key) for key in ("name", "labels")}
            await life.call("POST", BINDINGS, {**binding, "metadata": kept})


async def fail(life: Life) -> None:
    """Live on until it has failed a few times; rights reach the API server with some delay."""
    life.errors.clear()
    for _ in range(ROUNDS * 10):
        await life.round()
        if len(life.errors) >= ROUNDS:
            return
    pytest.fail("nothing is refused")


async def recover(life: Life) -> None:
    """Live on until a round fails no more."""
    for _ in range(ROUNDS * 10):
        life.errors.clear()
        await life.round()
        if not life.errors:
            return
    pytest.fail(f"it does not recover: {life.errors}")


async def test_f18_rights_that_are_revoked_on_the_way_to_ready_are_waited_for(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.round()

        async with without_rights(life):
            await fail(life)
        await recover(life)
        await life.until_ready()

        assert await outcome(life) == whole.ready


async def test_f18_rights_that_are_revoked_in_mid_teardown_leave_the_substrate_held(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.until_ready()
        await life.delete(Way.REPLACED)

        async with without_rights(life):
            await fail(life)
            substrate = await life.substrate()
        await recover(life)
        await life.until_gone()

        assert substrate is not None
        assert "deletionTimestamp" not in substrate["metadata"]
        assert await outcome(life) == whole.gone


async def test_f21_a_quota_on_secrets_is_named_burns_no_generation_and_is_made_good(
    ground: Ground, plain: Plain
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        quotas = f"/api/v1/namespaces/{life.namespace}/resourcequotas"
        body = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "few"},
            "spec": {"hard": {"count/secrets": "1"}},
        }
        await life.call("POST", quotas, body)
        await eventually(
            lambda: _counted(life, quotas), timeout_s=COUNTED_S, what="the quota is counted"
        )

        for _ in range(REFUSALS):
            await fail(life)
        told = await life.messages()
        refused = await life.resource()
        assert refused is not None
        assert refused.generation == 1
        assert await ground.pool.fetchval(TOKENS, life.project) == 0
        await life.call("DELETE", f"{quotas}/few")
        await recover(life)
        await life.until_ready()

        assert any("exceeded quota" in message for message in told)
        assert await outcome(life) == whole.ready


async def _counted(life: Life, quotas: str) -> bool:
    quota = await life.find(f"{quotas}/few")
    return quota is not None and "used" in quota.get("status", {})
