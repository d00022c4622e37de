"""A namespace says how many records it has: at once for the first, soon for those after it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from uuid_utils.compat import uuid7

from function.contract import names
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import StaleAggregateError
from tests.fakes.census import InMemoryCensus
from tests.fakes.management_cluster import InMemoryManagementCluster
from tests.simulation.loop import run
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.crowd import Crowd

HERE = samples.NAMESPACE


async def _store(crowd: Crowd) -> None:
    """Store one more row, as `broker_service` does."""
    first = crowd.resources[0]
    identity = ids.ProvisionedResourceID(uuid7())
    made = replace(
        first,
        id=identity,
        xr_name=names.xr_name(identity),
        key=replace(first.key, name=f"more-{len(crowd.world.store.resources)}"),
    )
    async with crowd.ticks.namespaces.one_more(HERE):
        crowd.world.store.resources[made.id] = made


def _count(crowd: Crowd) -> int:
    return crowd.world.cluster.records_in.get(HERE, 0)


def test_records_that_come_at_once_are_counted_at_the_next_look() -> None:
    async def come() -> None:
        crowd = Crowd(1)
        for _ in range(3):
            await _store(crowd)
        assert _count(crowd) == 1

        await crowd.driver.watch()
        await crowd.settle()

        assert _count(crowd) == 4

    run(come())


def test_what_was_counted_is_not_counted_again() -> None:
    async def rest() -> None:
        crowd = Crowd(1)
        await _store(crowd)
        await crowd.driver.watch()
        await crowd.settle()

        await crowd.driver.watch()

        assert crowd.driver.queue.depth == 0

    run(rest())


def test_one_that_is_stored_while_it_is_counted_is_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = InMemoryCensus.count_in_namespace

    async def race() -> None:
        crowd = Crowd(1)
        await _store(crowd)

        async def late(census: InMemoryCensus, namespace: str) -> int:
            count = await counted(census, namespace)
            monkeypatch.undo()
            await _store(crowd)
            return count

        monkeypatch.setattr(InMemoryCensus, "count_in_namespace", late)
        await crowd.driver.watch()
        await crowd.settle()
        assert _count(crowd) == 2

        await crowd.driver.watch()
        await crowd.settle()

        assert _count(crowd) == 3

    run(race())


def test_a_row_that_was_refused_writes_nothing_where_others_are() -> None:
    async def refuse() -> None:
        crowd = Crowd(2)
        namespaces = crowd.ticks.namespaces
        await namespaces.settle(HERE)
        written = list(crowd.world.cluster.journal)

        with pytest.raises(StaleAggregateError):
            async with namespaces.one_more(HERE):
                raise StaleAggregateError
        await crowd.driver.watch()
        await crowd.settle()

        assert crowd.world.cluster.journal == written

    run(refuse())


def test_one_that_could_not_be_written_stays_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise StaleAggregateError

    async def fail() -> None:
        crowd = Crowd(1)
        namespaces = crowd.ticks.namespaces
        monkeypatch.setattr(InMemoryManagementCluster, "hold_namespace", refused)
        with pytest.raises(StaleAggregateError):
            await namespaces.settle(HERE)

        assert namespaces.uncounted == {HERE}

    run(fail())


def test_a_namespace_is_not_let_go_while_a_row_is_being_stored() -> None:
    async def race() -> None:
        crowd = Crowd(1)
        namespaces = crowd.ticks.namespaces
        await namespaces.settle(HERE)
        crowd.world.store.resources.clear()

        async with namespaces.one_more(HERE):
            await namespaces.settle(HERE)
            assert _count(crowd) == 1
        await crowd.driver.watch()
        await crowd.settle()

        assert _count(crowd) == 0

    run(race())


def test_nor_is_it_when_a_row_begins_to_be_stored_after_it_was_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = InMemoryCensus.count_in_namespace

    async def race() -> None:
        crowd = Crowd(1)
        namespaces = crowd.ticks.namespaces
        await namespaces.settle(HERE)
        crowd.world.store.resources.clear()

        async with AsyncExitStack() as storing:

            async def late(census: InMemoryCensus, namespace: str) -> int:
                count = await counted(census, namespace)
                monkeypatch.undo()
                await storing.enter_async_context(namespaces.one_more(HERE))
                return count

            monkeypatch.setattr(InMemoryCensus, "count_in_namespace", late)
            await namespaces.settle(HERE)

            assert _count(crowd) == 1

    run(race())


def test_nothing_is_let_go_while_a_record_is_leaving_but_for_the_one_that_asks() -> None:
    """What a teardown does after its row is Deleted takes rights that go with the hold."""

    async def leave() -> None:
        crowd = Crowd(1)
        namespaces = crowd.ticks.namespaces
        await _store(crowd)
        held = _count(crowd)
        crowd.world.store.resources.clear()
        namespaces.leaving = lambda namespace: ["web-1"] if namespace == HERE else []

        await namespaces.settle(HERE)
        assert (_count(crowd), HERE in namespaces.uncounted) == (held, True)
        await namespaces.settle(HERE, last="web-2")
        assert _count(crowd) == held

        await namespaces.settle(HERE, last="web-1")
        assert (_count(crowd), HERE in namespaces.uncounted) == (0, False)

    run(leave())


def test_a_record_that_is_being_deleted_is_leaving() -> None:
    at = "2026-11-23T00:00:00Z"
    records = {
        (HERE, "web-1"): {"metadata": {"name": "web-1", "deletionTimestamp": at}},
        (HERE, "web-2"): {"metadata": {"name": "web-2"}},
        ("elsewhere", "web-3"): {"metadata": {"name": "web-3", "deletionTimestamp": at}},
    }

    view = ClusterView(records=lambda: records, projects=dict)

    assert view.leaving(HERE) == ["web-1"]
