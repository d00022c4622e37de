"""What `ports.broker.HoldLedger` promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from function.contract.strategy import Phase
from reconciler.domain.broker import shared_hold
from reconciler.domain.broker.errors import AssignmentNotFoundError
from reconciler.ports.broker import LOOSE_MAX
from tests.contract.worlds import World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract

SECRET = shared_hold.secret(samples.NAMESPACE, "cloud-credentials-0123456789abcdef", "demo-main")
CONFIG = shared_hold.provider_config(
    {
        "apiVersion": "generic.crossplane.io/v1",
        "metadata": {"namespace": samples.NAMESPACE, "name": "generic"},
    },
    "demo-main",
)
HERE = samples.NAMESPACE


async def test_what_is_remembered_is_listed_in_order(world: World) -> None:
    for hold in (SECRET, CONFIG):
        await world.holds.remember(hold)

    assert await world.holds.list_in_namespace(HERE) == [CONFIG, SECRET]


@pytest.mark.parametrize(
    "change", [{"namespace": "other"}, {"api_version": "v2"}, {"name": "o"}, {"credential": "o"}]
)
async def test_every_part_but_the_revision_tells_two_apart(
    world: World, change: dict[str, str]
) -> None:
    other = replace(SECRET, **change)  # type: ignore[arg-type]  # strings all
    await world.holds.remember(SECRET)
    await world.holds.remember(other)

    await world.holds.forget(SECRET)

    assert await world.holds.list_in_namespace(other.namespace) == [other]


async def test_remembering_again_counts_its_revision(world: World) -> None:
    await asyncio.gather(*(world.holds.remember(SECRET) for _ in range(5)))

    assert await world.holds.list_in_namespace(HERE) == [replace(SECRET, revision=4)]


async def test_forgetting_may_be_repeated(world: World) -> None:
    await world.holds.remember(SECRET)

    for _ in range(2):
        await world.holds.forget(SECRET)

    assert await world.holds.list_in_namespace(HERE) == []


async def test_one_that_was_remembered_since_it_was_read_is_not_forgotten(world: World) -> None:
    await world.holds.remember(SECRET)
    (read,) = await world.holds.list_in_namespace(HERE)

    await world.holds.remember(SECRET)
    await world.holds.forget(read)

    assert await world.holds.list_in_namespace(HERE) == [replace(SECRET, revision=1)]


async def test_of_one_who_remembers_and_one_who_forgets_the_first_is_never_lost(
    world: World,
) -> None:
    for _ in range(10):
        await world.holds.remember(SECRET)
        (read,) = await world.holds.list_in_namespace(HERE)

        await asyncio.gather(world.holds.forget(read), world.holds.remember(SECRET))

        (kept,) = await world.holds.list_in_namespace(HERE)
        await world.holds.forget(kept)


async def test_what_nobody_uses_is_loose_once_per_credential(world: World) -> None:
    for hold in (SECRET, CONFIG, replace(SECRET, credential="other")):
        await world.holds.remember(hold)

    loose = await world.holds.list_loose()

    assert sorted(loose) == [(HERE, "demo-main"), (HERE, "other")]


async def test_what_an_aggregate_uses_is_not_loose_until_it_is_deleted(world: World) -> None:
    resource = await world.resource()
    await world.holds.remember(SECRET)
    assert await world.holds.list_loose() == []

    requested = await world.repository.record_deletion_intent(
        resource.request_deletion(samples.NOW)
    )
    assert await world.holds.list_loose() == []
    await world.repository.update(replace(requested, phase=Phase.DELETED))

    assert await world.holds.list_loose() == [(HERE, "demo-main")]


async def test_use_in_another_namespace_does_not_count(world: World) -> None:
    await world.resource()

    await world.holds.remember(replace(SECRET, namespace="other"))

    assert await world.holds.list_loose() == [("other", "demo-main")]


async def test_a_sweep_gets_so_many_and_no_more(world: World) -> None:
    await asyncio.gather(
        *(
            world.holds.remember(replace(SECRET, credential=f"c{number}"))
            for number in range(LOOSE_MAX + 1)
        )
    )

    assert len(await world.holds.list_loose()) == LOOSE_MAX


async def test_each_cluster_has_its_own(world: World) -> None:
    await world.tenancy.ensure_cluster("elsewhere", "Elsewhere")
    await world.holds.remember(SECRET)
    await world.foreign_holds.remember(SECRET)

    await world.foreign_holds.forget(SECRET)

    assert await world.foreign_holds.list_loose() == []
    assert await world.foreign_holds.list_in_namespace(HERE) == []
    assert await world.holds.list_in_namespace(HERE) == [SECRET]


async def test_an_unknown_cluster_remembers_nothing(world: World) -> None:
    with pytest.raises(AssignmentNotFoundError):
        await world.foreign_holds.remember(SECRET)
