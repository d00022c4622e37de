"""A record whose status is incomplete until the catalogue is whole asks for itself again."""

from __future__ import annotations

from reconciler.app.converge.requeue import AGAIN_S
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld, record
from tests.unit.reconciler.app.world import SampleCatalog, World


async def _restored_without(gone: str) -> World:
    """Return a world whose record lost its status while a part of the catalogue is away."""
    before = World()
    await before.until_ready()
    raw = {key: value for key, value in before.raw.items() if key != "status"}
    catalog = SampleCatalog()
    getattr(catalog, gone).clear()
    return World(store=before.store, cluster=before.cluster, raw=raw, catalog=catalog)


async def test_it_names_its_provider_config_soon_after_the_catalogue_is_whole() -> None:
    for gone in ("blueprints", "credentials", "clouds"):
        world = await _restored_without(gone)
        await world.tick_until_quiet()
        assert "providerConfigRef" not in world.status

        again = await world.tick()
        setattr(world.catalog, gone, getattr(SampleCatalog(), gone))
        settled = await world.tick()

        assert again == AGAIN_S, gone
        assert world.status["providerConfigRef"]["name"] == samples.CLOUD.provider.value
        assert settled != AGAIN_S


async def test_one_that_names_its_provider_config_rests_while_the_catalogue_is_away() -> None:
    world = World()
    await world.until_ready()
    for part in (world.catalog.blueprints, world.catalog.credentials, world.catalog.clouds):
        part.clear()

    assert await world.tick() != AGAIN_S


async def test_an_enrolled_resource_has_no_blueprint_and_waits_for_none() -> None:
    world = EnrolledWorld(raw=record(siblings=False))
    await world.until_ready()

    assert await world.tick() != AGAIN_S
