"""What somebody prepared under a name of ours, and what becomes of the record meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import Condition, ConditionType, find
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import GONE, World

SECRET = names.cloud_credentials_secret_name(
    mount=samples.CREDENTIAL.vault.mount, path=samples.CREDENTIAL.vault.path
)


def _ready(world: World) -> Condition:
    found = find(world.status, ConditionType.READY)
    assert found is not None
    return Condition(type="Ready", status=found.status, reason=found.reason, message=found.message)


async def test_nothing_is_given_out_while_its_secret_is_being_deleted() -> None:
    world = World()
    key = (samples.NAMESPACE, SECRET)
    world.cluster.credentials.add(key)
    world.cluster.going.add(("Secret", *key))

    await world.tick()
    await world.tick()

    said = _ready(world)
    assert said.reason == "BeingDeleted"
    assert f"Secret {SECRET!r} is being deleted" in said.message
    assert "create secret" not in world.cluster.journal

    world.cluster.going.clear()
    await world.until_ready()
    assert ("Secret", *key) in world.cluster.held


async def _sweep(world: World) -> None:
    """What the driver does for a credential in use, once a sweep."""
    await world.tick_.credentials.settle(samples.NAMESPACE, "demo-main")
    await world.tick_.configs.follow(samples.NAMESPACE, "demo-main")


async def test_an_edited_endpoint_reaches_the_provider_config_of_nodes_at_rest() -> None:
    world = World()
    await world.until_ready()
    (key,) = world.cluster.provider_configs
    world.catalog.clouds[samples.CLOUD_NAME] = samples.CLOUD.model_copy(
        update={"endpoint": {"url": "https://new.test"}}
    )

    await _sweep(world)

    assert world.cluster.provider_config_specs[key]["endpoint"] == {"url": "https://new.test"}


async def test_what_somebody_changed_of_a_provider_config_is_changed_back() -> None:
    world = World()
    await world.until_ready()
    (key,) = world.cluster.provider_configs
    wanted = dict(world.cluster.provider_config_specs[key])
    world.cluster.provider_config_specs[key] = {"endpoint": {"url": "https://mine.test"}}

    await _sweep(world)

    assert world.cluster.provider_config_specs[key] == wanted


async def test_a_process_that_starts_learns_of_it_from_one_node_at_rest() -> None:
    world = World()
    await world.until_ready()
    (key,) = world.cluster.provider_configs
    wanted = dict(world.cluster.provider_config_specs[key])
    world.cluster.provider_config_specs[key] = {"endpoint": {"url": "https://mine.test"}}
    world.tick_.configs._users.clear()

    await _sweep(world)
    assert world.cluster.provider_config_specs[key] != wanted
    await world.tick()

    assert world.cluster.provider_config_specs[key] == wanted


async def test_a_provider_config_that_nobody_needs_any_more_is_not_made_anew() -> None:
    world = World()
    await world.until_ready()
    world.delete(xr=GONE)
    await world.tick_until_quiet()

    await _sweep(world)

    assert world.cluster.provider_configs == {}


async def test_a_namespace_that_goes_takes_no_record() -> None:
    world = World()
    world.cluster.going.add(("Namespace", "", samples.NAMESPACE))

    await world.tick()

    admitted: Any = find(world.status, ConditionType.ADMITTED)
    assert admitted.reason == "NamespaceNotReady"
    assert "is being deleted" in admitted.message
    assert world.store.resources == {}


@pytest.mark.parametrize("holder", [None, "another"])
async def test_a_provider_config_that_is_not_ours_names_what_helps(holder: str | None) -> None:
    world = World()
    world.cluster.provider_configs[samples.NAMESPACE, "generic"] = holder

    await world.tick()

    admitted: Any = find(world.status, ConditionType.ADMITTED)
    assert admitted.reason == "ProviderConfigTaken"
    expected = "delete it to have it created" if holder is None else "CloudCredential 'another'"
    assert expected in admitted.message
