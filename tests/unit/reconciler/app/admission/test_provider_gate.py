"""A blueprint of a real provider gets that provider's ProviderConfig, or is refused before."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.conditions import ConditionType, find
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import GONE, World

API = "machines.m.example.org/v1beta1"
REAL = BlueprintVersionSpec.model_validate(
    samples.BLUEPRINT.model_dump(mode="json", by_alias=True)
    | {"providerConfig": {"apiVersion": API, "fieldPath": "spec.providerConfigRef.name"}}
)
KINDS = {
    (samples.SUBSTRATE.api_version, samples.SUBSTRATE.kind): True,
    (samples.XR["apiVersion"], samples.XR["kind"]): True,
    (API, "ProviderConfig"): True,
}


def _world() -> World:
    world = World()
    world.catalog.blueprints[samples.BLUEPRINT_NAME] = REAL
    world.cluster.kinds = dict(KINDS)
    return world


async def test_it_is_made_for_the_credential_and_goes_with_it() -> None:
    world = _world()
    await world.until_ready()
    assert world.cluster.provider_configs == {(samples.NAMESPACE, "demo-main"): "demo-main"}
    assert world.status["providerConfigRef"] == {"kind": "ProviderConfig", "name": "demo-main"}

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.cluster.provider_configs == {}


@pytest.mark.parametrize("served", [None, False], ids=["missing", "cluster-scoped"])
async def test_a_provider_that_is_not_installed_is_refused(served: Any) -> None:
    world = _world()
    assert world.cluster.kinds is not None
    del world.cluster.kinds[API, "ProviderConfig"]
    if served is not None:
        world.cluster.kinds[API, "ProviderConfig"] = served

    await world.tick()

    admitted = find(world.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.reason == "UnsupportedBlueprint"
    assert admitted.message.startswith("BlueprintVersion.spec.providerConfig.apiVersion: ")
    assert world.store.resources == {}


@pytest.mark.parametrize("verb", ["get", "create", "delete"])
async def test_one_out_of_reach_is_refused(verb: str) -> None:
    world = _world()
    world.cluster.forbidden.add((API, "ProviderConfig", verb))

    await world.tick()

    admitted = find(world.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.reason == "RightsMissing"
    assert verb in admitted.message
    assert world.store.resources == {}


async def test_rights_on_it_are_asked_for_where_the_broker_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, asked = _world(), []
    missing_rights = world.cluster.missing_rights

    async def noting(**question: Any) -> tuple[str, ...]:
        asked.append((question["kind"], question.get("namespace", "")))
        return await missing_rights(**question)

    monkeypatch.setattr(world.cluster, "missing_rights", noting)

    await world.tick()

    assert ("ProviderConfig", samples.NAMESPACE) in asked
    assert {where for kind, where in asked if kind != "ProviderConfig"} == {""}
