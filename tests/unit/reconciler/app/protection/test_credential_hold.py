"""The hold on credentials on fakes: while somebody uses them, and not a step longer."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from function.contract.catalog.published import SecretStoreRef
from function.contract.conditions import ConditionType, find
from function.contract.strategy import Phase
from reconciler.app.protection.credential_hold import CredentialHold
from reconciler.domain.protection import shared_hold
from reconciler.ports.cluster.namespaces import Needed
from tests.fakes.management_cluster import every_role
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import GONE, World

SECRET = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")
STORED = samples.CREDENTIAL.model_copy(update={"secret_store_ref": SecretStoreRef(name="openbao")})
HELD = ("Secret", samples.NAMESPACE, SECRET)
RENDERED = ("ExternalSecret", samples.NAMESPACE, SECRET)
EFFECTS_MAX = 28
"""Effects of a teardown that lets two objects go."""


def _world(*, stored: bool = False) -> World:
    world = World()
    world.cluster.credentials.add((samples.NAMESPACE, SECRET))
    if stored:
        world.catalog.credentials[samples.CREDENTIAL_NAME] = STORED
    return world


def _sibling(world: World) -> World:
    sibling = World(store=world.store, cluster=world.cluster, catalog=world.catalog)
    sibling.raw["metadata"].update({"name": "web-2-abc", "uid": "record-2"})
    declared = sibling.raw["spec"]["declaration"]
    declared["xr"] = {**declared["xr"], "name": "web-2"}
    return sibling


async def test_it_is_held_before_a_token_is_minted() -> None:
    world = _world()

    await world.tick()

    assert world.cluster.held == {HELD}
    journal = world.cluster.journal
    assert journal.index("hold Secret") < journal.index("create secret")


async def test_it_is_let_go_after_the_provider_config() -> None:
    world = _world(stored=True)
    await world.until_ready()
    world.cluster.journal.clear()

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.cluster.held == set()
    journal = world.cluster.journal
    assert journal.index("delete provider config") < journal.index("let go Secret")
    assert journal.index("delete provider config") < journal.index("delete external secret")
    assert journal.index("let go Secret") < journal.index("remove finalizer")


@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_a_crash_after_any_effect_lets_it_go_all_the_same(after: int) -> None:
    world = _world(stored=True)
    world.fuse.after = None
    await world.until_ready()
    world.fuse.burnt, world.fuse.after = 0, after

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.cluster.held == set()
    assert world.resource.phase is Phase.DELETED
    assert not world.finalizer


async def test_the_crash_cases_cover_every_effect() -> None:
    world = _world(stored=True)
    await world.until_ready()
    world.fuse.burnt = 0

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert 10 <= world.fuse.burnt <= EFFECTS_MAX


async def test_it_stays_held_while_a_sibling_uses_it() -> None:
    world = _world()
    await world.until_ready()
    await _sibling(world).tick()

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.cluster.held == {HELD}


async def test_it_is_let_go_when_the_catalogue_lost_the_credential() -> None:
    world = _world()
    await world.until_ready()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = None

    world.delete(xr=GONE)
    await world.tick_until_quiet()

    assert world.cluster.provider_configs == {}
    assert world.cluster.held == set()


async def test_one_that_comes_later_is_held_by_the_sweep() -> None:
    world = World()
    await world.until_ready()
    assert world.cluster.held == set()

    world.cluster.credentials.add((samples.NAMESPACE, SECRET))
    await world.tick_.credentials.settle(samples.NAMESPACE, "demo-main")

    assert world.cluster.held == {HELD}


async def test_a_provider_config_that_came_after_its_last_user_went_stands_in_nobodys_way() -> None:
    world = _world()
    await world.tick()
    (key,) = world.cluster.provider_configs
    world.cluster.provider_configs[key] = "long-gone"

    await world.tick()
    assert await world.tick_.credentials.loose() == [(samples.NAMESPACE, "long-gone")]
    for namespace, credential in await world.tick_.credentials.loose():
        await world.tick_.credentials.settle(namespace, credential)
    await world.tick_until_quiet()

    assert world.cluster.provider_configs == {key: "demo-main"}


async def test_one_that_somebody_else_made_is_never_called_loose() -> None:
    world = _world()
    await world.tick()
    (key,) = world.cluster.provider_configs
    world.cluster.provider_configs[key] = None

    await world.tick()

    assert await world.tick_.credentials.loose() == []


async def test_an_absent_secret_holds_nothing_up() -> None:
    world = World()

    await world.until_ready()

    assert "hold Secret" not in world.cluster.journal


async def test_an_external_secret_is_rendered_where_a_store_is_named() -> None:
    world = _world(stored=True)

    await world.tick()

    assert world.cluster.held == {HELD, RENDERED}
    assert list(world.cluster.external_secrets) == [(samples.NAMESPACE, SECRET)]


@pytest.mark.parametrize("present", [False, True], ids=["absent", "by-hand"])
async def test_without_external_secrets_the_record_says_what_is_missing(present: bool) -> None:
    world = World()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = STORED
    served = {("generic.crossplane.io/v1", "ProviderConfig"): True}
    substrate = (samples.SUBSTRATE.api_version, samples.SUBSTRATE.kind)
    xr = (samples.XR["apiVersion"], samples.XR["kind"])
    world.cluster.kinds = {**served, substrate: True, xr: True}
    if present:
        world.cluster.credentials.add((samples.NAMESPACE, SECRET))

    await world.tick()

    ready = find(world.status, ConditionType.READY)
    assert ready is not None
    assert (ready.reason == "ExternalSecretsMissing") != present
    assert (SECRET in ready.message) != present
    assert "create secret" in world.cluster.journal


async def test_of_a_node_that_comes_while_another_goes_neither_loses_its_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = _world()
    await world.until_ready()
    world.delete(xr=GONE)
    await world.tick_until_quiet()
    ports: Any = world.tick_._ports
    hold = CredentialHold(ports.repository, ports.holds, every_role(world.cluster), world.catalog)
    let_go = world.cluster.hold_credentials
    came = _sibling(world)

    async def overtaken(
        namespace: str, name: str, *, held: bool, needed: Needed | None = None
    ) -> bool:
        if not held:
            monkeypatch.undo()
            await came.tick()
        return await let_go(namespace, name, held=held, needed=needed)

    monkeypatch.setattr(world.cluster, "hold_credentials", overtaken)
    known = [shared_hold.secret(samples.NAMESPACE, SECRET, "demo-main")]
    await hold.settle(samples.NAMESPACE, "demo-main", known=known)

    assert world.cluster.held == {HELD}
    assert {item.name for item in world.store.holds.values()} >= {SECRET}


async def test_two_credentials_of_one_secret_hold_it_together() -> None:
    world = _world()
    world.catalog.credentials["demo-twin"] = samples.CREDENTIAL
    await world.until_ready()
    ports: Any = world.tick_._ports
    accepted = samples.DECLARATION.model_copy(update={"cloud_credential": "demo-twin"})
    twin = samples.resource(accepted=accepted)
    hold = CredentialHold(ports.repository, ports.holds, every_role(world.cluster), world.catalog)

    world.store.resources = {twin.id: twin}
    await hold.settle(samples.NAMESPACE, "demo-main")

    assert world.cluster.held == {HELD}
