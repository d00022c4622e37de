"""What `ports.store.aggregates.HoldLedger` promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from function.contract.strategy import Phase
from reconciler.domain.aggregate.errors import AssignmentNotFoundError
from reconciler.domain.protection import shared_hold
from reconciler.domain.protection.shared_hold import SharedHold
from reconciler.ports.store.aggregates import LOOSE_MAX
from tests.contract.worlds import ELSEWHERE, World, aggregate
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

    await _let_go(world, SECRET)

    assert await world.holds.list_in_namespace(other.namespace) == [other]


async def _let_go(world: World, hold: SharedHold) -> None:
    """Let go of what nobody remembers again meanwhile."""
    marked = await world.holds.loosen(hold)
    assert marked is not None
    await world.holds.forget(marked)


async def test_remembering_again_writes_nothing(world: World) -> None:
    await asyncio.gather(*(world.holds.remember(SECRET) for _ in range(5)))

    assert await world.holds.list_in_namespace(HERE) == [SECRET]


async def test_remembering_what_is_being_let_go_counts_its_revision_once(world: World) -> None:
    await world.holds.remember(SECRET)
    marked = await world.holds.loosen(SECRET)
    assert marked == replace(SECRET, revision=1)

    await asyncio.gather(*(world.holds.remember(SECRET) for _ in range(5)))

    assert await world.holds.list_in_namespace(HERE) == [replace(SECRET, revision=2)]


async def test_letting_go_may_be_begun_again(world: World) -> None:
    await world.holds.remember(SECRET)
    marked = await world.holds.loosen(SECRET)
    assert marked is not None

    again = await world.holds.loosen(marked)
    assert again is not None
    await world.holds.forget(marked)
    assert await world.holds.list_in_namespace(HERE) == [again]
    await world.holds.forget(again)

    assert await world.holds.list_in_namespace(HERE) == []


async def test_forgetting_may_be_repeated(world: World) -> None:
    await world.holds.remember(SECRET)
    marked = await world.holds.loosen(SECRET)
    assert marked is not None

    for _ in range(2):
        await world.holds.forget(marked)

    assert await world.holds.list_in_namespace(HERE) == []


async def test_what_nobody_is_letting_go_is_not_forgotten(world: World) -> None:
    await world.holds.remember(SECRET)

    await world.holds.forget(SECRET)

    assert await world.holds.list_in_namespace(HERE) == [SECRET]


async def test_one_that_was_remembered_since_it_was_marked_is_not_forgotten(world: World) -> None:
    await world.holds.remember(SECRET)
    marked = await world.holds.loosen(SECRET)
    assert marked is not None

    await world.holds.remember(SECRET)
    await world.holds.forget(marked)

    assert await world.holds.list_in_namespace(HERE) == [replace(SECRET, revision=2)]


@pytest.mark.parametrize("gone", [True, False])
async def test_what_is_not_as_it_was_read_cannot_be_let_go(world: World, gone: bool) -> None:
    if not gone:
        await world.holds.remember(SECRET)
        await world.holds.loosen(SECRET)

    assert await world.holds.loosen(SECRET) is None


async def test_of_one_who_remembers_and_one_who_forgets_the_first_is_never_lost(
    world: World,
) -> None:
    for _ in range(10):
        await world.holds.remember(SECRET)
        (read,) = await world.holds.list_in_namespace(HERE)
        marked = await world.holds.loosen(read)
        assert marked is not None

        await asyncio.gather(world.holds.forget(marked), world.holds.remember(SECRET))

        (kept,) = await world.holds.list_in_namespace(HERE)
        await _let_go(world, kept)


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


async def test_use_on_another_management_cluster_does_not_count(world: World) -> None:
    await world.tenancy.ensure_cluster("elsewhere", "Elsewhere")
    await world.foreign.create(aggregate(management_cluster_id=ELSEWHERE))

    await world.holds.remember(SECRET)

    assert await world.holds.list_loose() == [(HERE, "demo-main")]


async def test_a_sweep_gets_so_many_and_no_more(world: World) -> None:
    await asyncio.gather(
        *(
            world.holds.remember(replace(SECRET, credential=f"c{number}"))
            for number in range(LOOSE_MAX + 1)
        )
    )

    assert len(await world.holds.list_loose()) == LOOSE_MAX


async def test_what_cannot_be_let_go_keeps_nothing_else_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (
        "reconciler.adapters.postgres.aggregates.hold_ledger",
        "tests.fakes.hold_ledger",
    ):
        monkeypatch.setattr(f"{module}.LOOSE_MAX", 2)
    for number in range(3):
        await world.holds.remember(replace(SECRET, credential=f"c{number}"))

    looks = [await world.holds.list_loose() for _ in range(3)]

    assert looks == [[(HERE, "c0"), (HERE, "c1")], [(HERE, "c2")], looks[0]]


async def _let_go_of_foreign(world: World) -> None:
    marked = await world.foreign_holds.loosen(SECRET)
    assert marked is not None
    await world.foreign_holds.forget(marked)


async def test_each_cluster_has_its_own(world: World) -> None:
    await world.tenancy.ensure_cluster("elsewhere", "Elsewhere")
    await world.holds.remember(SECRET)
    await world.foreign_holds.remember(SECRET)

    await _let_go_of_foreign(world)

    assert await world.foreign_holds.list_loose() == []
    assert await world.foreign_holds.list_in_namespace(HERE) == []
    assert await world.holds.list_in_namespace(HERE) == [SECRET]


async def test_an_unknown_cluster_remembers_nothing(world: World) -> None:
    with pytest.raises(AssignmentNotFoundError):
        await world.foreign_holds.remember(SECRET)
