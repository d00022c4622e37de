"""What is held for a credential is let go by the sweep when nothing else comes back to it."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any, cast

import pytest

from function.contract import names
from function.contract.catalog.published import SecretStoreRef, VaultPath
from function.contract.strategy import Phase
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.guard.circuit_breaker import CircuitBreaker
from reconciler.app.projects.project_reconciler import ProjectReconciler
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import ALIVE, GONE, CrashError, Fuse, World

STORED = samples.CREDENTIAL.model_copy(update={"secret_store_ref": SecretStoreRef(name="openbao")})
MOVED = STORED.model_copy(update={"vault": VaultPath(mount="kv", path="acme/moved")})
OLD = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")
NEW = names.cloud_credentials_secret_name(mount="kv", path="acme/moved")
EFFECTS_MAX = 34
"""Effects of the longest teardown and sweep here."""


async def _ready() -> World:
    world = World(fuse=Fuse())
    world.cluster.credentials |= {(samples.NAMESPACE, OLD), (samples.NAMESPACE, NEW)}
    world.catalog.credentials[samples.CREDENTIAL_NAME] = STORED
    await world.until_ready()
    return world


def _started(world: World, *, missing: bool = True) -> Controller:
    """Drive the world by a fresh process."""
    raw = world.raw["metadata"]
    records = {} if missing else {(raw["namespace"], raw["name"]): world.raw}
    breaker = CircuitBreaker(lambda: world.store.clock.now().timestamp())
    return Controller(
        view=ClusterView(records=lambda: records, projects=dict, breaker=breaker),
        repository=InMemoryBrokerRepository(world.store, samples.CLUSTER),
        reconciler=world.tick_,
        teardown=world.teardown,
        project_reconciler=cast("ProjectReconciler", None),
        cluster_id=samples.CLUSTER,
    )


async def _sweep(world: World, *, missing: bool = True) -> None:
    """Sweep as a fresh process does at its start; a crash ends the process."""
    driver = _started(world, missing=missing)
    for _ in range(10):
        await driver.sweep_records()
        await driver.queue.settle()
        world.store.clock.advance(timedelta(minutes=1))


def _pool_shrink(world: World) -> tuple[Any, ...]:
    cluster = world.cluster
    return cluster.held, cluster.provider_configs, world.store.holds


@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
@pytest.mark.parametrize("spec", [None, MOVED, STORED], ids=["removed", "moved", "kept"])
async def test_a_crash_after_any_effect_leaves_nothing_held(spec: Any, after: int) -> None:
    world = await _ready()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = spec
    world.fuse.burnt, world.fuse.after = 0, after

    world.delete(xr=GONE)
    await world.tick_until_quiet()
    await _sweep(world)

    assert world.resource.phase is Phase.DELETED
    assert _pool_shrink(world) == (set(), {}, {})


@pytest.mark.parametrize("after", range(1, EFFECTS_MAX + 1))
async def test_so_it_does_where_the_record_is_gone(after: int) -> None:
    world = await _ready()
    world.cluster.xr = GONE
    world.fuse.burnt, world.fuse.after = 0, after

    for _ in range(EFFECTS_MAX):
        if world.resource.phase is Phase.DELETED:
            break
        try:
            await world.teardown.run_missing(world.resource)
        except CrashError:
            continue
    await _sweep(world)

    assert world.resource.phase is Phase.DELETED
    assert _pool_shrink(world) == (set(), {}, {})


async def _killed_at_deleted() -> World:
    """Let the process of a vanished record die right after `Deleted` was stored."""
    for after in range(1, EFFECTS_MAX + 1):
        world = await _ready()
        world.cluster.xr = GONE
        world.fuse.burnt, world.fuse.after = 0, after
        with contextlib.suppress(CrashError):
            while world.resource.phase is not Phase.DELETED:
                await world.teardown.run_missing(world.resource)
        if world.resource.phase is Phase.DELETED:
            return world
    pytest.fail("it is never Deleted")


async def test_a_namespace_is_let_go_after_what_is_held_there_for_a_credential() -> None:
    world = await _killed_at_deleted()
    driver = _started(world)
    left = []

    for _ in range(3):
        await driver.sweep_records()
        await driver.queue.settle()
        left.append((world.cluster.held, world.cluster.records_in[samples.NAMESPACE]))

    (_, before), (held, after), _ = left
    assert (before, held, after) == (1, set(), 0)


async def test_the_crash_cases_cover_every_effect() -> None:
    world = await _ready()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = MOVED
    world.fuse.burnt = 0

    world.delete(xr=GONE)
    await world.tick_until_quiet()
    await _sweep(world)

    assert 10 <= world.fuse.burnt <= EFFECTS_MAX


async def test_what_a_moved_credential_leaves_behind_stays_held_for_its_nodes() -> None:
    world = await _ready()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = MOVED

    await _sweep(world, missing=False)

    held = {name for kind, _, name in world.cluster.held if kind == "Secret"}
    assert held == {OLD, NEW}


@pytest.mark.parametrize("spec", [None, MOVED], ids=["removed", "moved"])
async def test_a_hold_that_somebody_lost_comes_back_without_the_catalogue(spec: Any) -> None:
    world = await _ready()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = spec
    world.cluster.held.clear()

    await _sweep(world, missing=False)

    assert ("Secret", samples.NAMESPACE, OLD) in world.cluster.held


async def test_a_sweep_of_what_is_settled_writes_nothing() -> None:
    world = await _ready()
    world.catalog.credentials[samples.CREDENTIAL_NAME] = None
    world.delete(xr=GONE)
    await world.tick_until_quiet()
    await _sweep(world)
    world.cluster.journal.clear()
    world.fuse.burnt = 0

    await _sweep(world)

    assert world.cluster.journal == []
    # A start asks once for each namespace that is empty by now, and finds it as it should be.
    assert world.fuse.burnt == 1


async def test_a_node_in_use_keeps_what_it_needs() -> None:
    world = await _ready()
    world.cluster.xr = ALIVE
    before = (set(world.cluster.held), dict(world.cluster.provider_configs))

    await _sweep(world, missing=False)

    assert (world.cluster.held, world.cluster.provider_configs) == before


async def test_a_hold_is_remembered_before_it_is_put() -> None:
    world = await _ready()
    world = World(fuse=Fuse(after=1), store=world.store, cluster=world.cluster)
    world.catalog.credentials[samples.CREDENTIAL_NAME] = STORED
    world.store.holds.clear()
    world.cluster.held.clear()
    world.cluster.provider_configs.clear()
    world.store.resources.clear()

    for after in range(1, 12):
        world.fuse.burnt, world.fuse.after = 0, after
        try:
            await world.tick()
        except CrashError:
            world.store.clock.advance(timedelta(minutes=1))
        remembered = {hold.name for hold in world.store.holds.values()}
        named = {name for _, _, name in world.cluster.held}
        assert named | {name for _, name in world.cluster.provider_configs} <= remembered


async def test_a_provider_config_of_another_credential_stays() -> None:
    world = await _ready()
    (key,) = world.cluster.provider_configs
    world.cluster.provider_configs[key] = "another"

    world.delete(xr=GONE)
    await world.tick_until_quiet()
    await _sweep(world)

    assert world.cluster.provider_configs == {key: "another"}
    assert world.store.holds == {}
