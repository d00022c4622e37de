"""An aggregate's events count on, whatever became of the earlier ones."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from function.contract.strategy import Phase
from reconciler.adapters.postgres.connection import migrate
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import lifecycle
from tests.contract.worlds import World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

REMOVE = "DELETE FROM plexsphere.outbox_events WHERE aggregate_id = $1"
TOLD_BEFORE = """
INSERT INTO plexsphere.outbox_events
    (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
SELECT $1, 'ProvisionedResource', $2, coalesce(max(aggregate_sequence), 0) + 1,
       'broker.ProvisionedResourceReady', '{}', now()
FROM plexsphere.outbox_events WHERE aggregate_id = $2
"""
"""As the schema leaves it that went below 0028 and came up again: events, and no count of them."""
REMOVE_OF_TYPE = "DELETE FROM plexsphere.outbox_events WHERE aggregate_type = $1"


async def _entered(
    world: World, resource: ProvisionedResource, phase: Phase
) -> ProvisionedResource:
    event = lifecycle.on_phase(resource, phase)
    return await world.repository.update(replace(resource, phase=phase), event=event)


async def _told_of(world: World) -> ProvisionedResource:
    """Return a resource with a token, in a Project that was placed."""
    resource = await world.resource()
    await world.token(resource)
    cluster = await world.tenancy.ensure_cluster("local", "local")
    await world.tenancy.assign_project(
        samples.PROJECT, cluster, namespace=samples.NAMESPACE, phase="Ready"
    )
    return resource


async def _sequences(world: World, resource: ProvisionedResource) -> list[int]:
    return [row.aggregate_sequence for row in await world.backdoor.events(resource.id)]


async def test_removed_events_are_not_counted_again(world: World, pool: asyncpg.Pool) -> None:
    resource = await _entered(world, await world.resource(), Phase.READY)
    await pool.execute(REMOVE, resource.id)

    await _entered(world, resource, Phase.FAILED)

    assert await _sequences(world, resource) == [3]


async def test_events_of_before_the_count_are_counted_on(world: World, pool: asyncpg.Pool) -> None:
    resource = await world.resource()
    await pool.execute(TOLD_BEFORE, uuid4(), resource.id)

    await _entered(world, resource, Phase.FAILED)

    assert await _sequences(world, resource) == [1, 2, 3]


@pytest.mark.parametrize("aggregate_type", ["ProvisionedResource", "BootstrapToken", "Project"])
async def test_a_schema_with_removed_events_does_not_go_back_below_their_counts(
    world: World, pool: asyncpg.Pool, dsn: str, aggregate_type: str
) -> None:
    await _told_of(world)
    await pool.execute(REMOVE_OF_TYPE, aggregate_type)

    with pytest.raises(migrate.MigrationError, match="begin again"):
        await migrate.downgrade(dsn, "0027")

    assert await migrate.current(dsn) == migrate.head()


async def test_a_token_of_which_nothing_more_is_told_holds_no_schema_back(
    world: World, pool: asyncpg.Pool, dsn: str
) -> None:
    resource = await _told_of(world)
    await world.issuer.revoke(resource.id)
    await pool.execute(REMOVE_OF_TYPE, "BootstrapToken")

    assert await migrate.downgrade(dsn, "0027") == "0027"
