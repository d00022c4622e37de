"""The driver believes no lost cluster, and looks again only at what changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from function.contract.strategy import MeshRole, Phase
from reconciler.app.controller import controller
from reconciler.app.controller.sweep import FULL_PASS, IN_TURN
from reconciler.app.guard.missing_records import SECOND_LOOK_S
from reconciler.app.queue.keys import CredentialKey, SiblingsKey
from reconciler.domain.aggregate import ids
from reconciler.domain.guard.circuit_breaker import CALM_S, FEW, BreakerCause
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.crowd import Crowd
from tests.unit.reconciler.app.world import ALIVE

BY = pytest.mark.parametrize("watch", [True, False], ids=["watch", "relist"])


@BY
async def test_records_that_vanish_in_numbers_are_not_believed(watch: bool) -> None:
    crowd = Crowd(40)

    crowd.lose(crowd.resources[:10], watch=watch)
    await crowd.work(sweep=not watch)
    await crowd.work()

    assert crowd.asked() == 0
    assert crowd.breaker.mode.causes == {BreakerCause.RECORDS_VANISHED}


@BY
async def test_an_emptied_cluster_loses_no_node(watch: bool) -> None:
    crowd = Crowd(200)

    crowd.lose(crowd.resources, watch=watch)
    await crowd.work(sweep=not watch)
    crowd.world.store.clock.advance(timedelta(hours=1))
    await crowd.work()

    assert crowd.asked() == 0
    assert crowd.breaker.frozen


@BY
async def test_one_that_vanished_is_believed_at_the_second_look(watch: bool) -> None:
    crowd = Crowd(3)
    crowd.lose(crowd.resources[:1], watch=watch)

    await crowd.driver.sweep_records()
    await crowd.driver.queue.settle()
    await crowd.driver.queue.settle()
    assert crowd.asked() == 0
    await crowd.work()

    assert crowd.asked() == 1


async def test_one_that_comes_back_in_between_is_not_torn_down() -> None:
    crowd = Crowd(3)
    where = crowd.where(crowd.resources[0])
    raw = crowd.records[where]
    crowd.lose(crowd.resources[:1], watch=True)
    await crowd.driver.queue.settle()
    await crowd.driver.queue.settle()

    crowd.records[where] = raw
    await crowd.work()
    crowd.lose(crowd.resources[:1], watch=True)
    await crowd.driver.queue.settle()
    await crowd.driver.queue.settle()

    assert crowd.asked() == 0


async def test_a_cache_that_lost_what_is_there_is_found_out() -> None:
    crowd = Crowd(3)
    crowd.live.add(crowd.where(crowd.resources[0]))

    crowd.lose(crowd.resources[:1], watch=True)
    await crowd.work()

    assert crowd.asked() == 0
    assert crowd.lists == 1
    assert crowd.breaker.mode.causes == {BreakerCause.CACHE_STALE}


async def test_a_cache_that_was_listed_anew_thaws() -> None:
    crowd = Crowd(3)
    crowd.live.add(crowd.where(crowd.resources[0]))
    crowd.lose(crowd.resources[:1], watch=True)
    await crowd.work()

    for _ in range(2):
        crowd.world.store.clock.advance(timedelta(minutes=2))
        await crowd.driver.watch()

    assert not crowd.breaker.frozen
    assert len(crowd.breaker.missing) == 0
    assert crowd.asked() == 0


async def test_a_record_made_again_since_the_cache_was_read_freezes_nothing() -> None:
    crowd = Crowd(3)
    lost = crowd.resources[0]
    raw = crowd.records[crowd.where(lost)]
    crowd.lose([lost], watch=True)
    await crowd.settle()
    crowd.world.store.clock.advance(timedelta(seconds=SECOND_LOOK_S))

    crowd.live.add(crowd.where(lost))
    crowd.driver.registered(lost.id)
    await crowd.settle()
    crowd.driver.registered(lost.id)
    await crowd.settle()
    crowd.records[crowd.where(lost)] = raw
    await crowd.hear_of([lost])

    assert crowd.asked() == 0
    assert not crowd.breaker.frozen
    assert len(crowd.breaker.missing) == 0


OTHER = ids.management_cluster_id("elsewhere")


async def test_a_registration_with_another_cluster_is_left_to_its_driver() -> None:
    here = Crowd(0)
    there = Crowd(1, cluster=OTHER, store=here.world.store)

    await here.hear_of(there.resources)

    assert here.asked() == 0
    assert len(here.breaker.missing) == 0
    await there.hear_of(there.resources)
    assert set(there.ticks.done) == {there.resources[0].record.name}


async def test_of_two_clusters_on_one_store_each_takes_down_its_own() -> None:
    here = Crowd(1)
    there = Crowd(1, cluster=OTHER, store=here.world.store)
    both = [*here.resources, *there.resources]
    here.records.clear()
    there.records.clear()

    await here.hear_of(both)
    rows = here.world.store.resources
    first = [rows[each.id].phase for each in both]
    await there.hear_of(both)
    second = [rows[each.id].phase for each in both]

    assert first == [Phase.DELETED, Phase.READY]
    assert second == [Phase.DELETED, Phase.DELETED]


async def test_another_clusters_siblings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Crowd(1)
    there = Crowd(1, cluster=OTHER, store=here.world.store)
    parted: list[ids.ProvisionedResourceID] = []

    async def part(which: ids.ProvisionedResourceID) -> None:
        parted.append(which)

    monkeypatch.setattr(here.world.teardown, "part", part)
    for resource in (*here.resources, *there.resources):
        here.driver.queue.add(SiblingsKey(id=str(resource.id)))
    await here.driver.queue.settle()

    assert parted == [here.resources[0].id]


@BY
async def test_a_deletion_that_was_asked_for_goes_on_while_frozen(watch: bool) -> None:
    crowd = Crowd(40)
    wanted = crowd.resources[20]
    rows = crowd.world.store.resources
    rows[wanted.id] = wanted.request_deletion(crowd.world.store.clock.now())

    crowd.lose(crowd.resources[:21], watch=watch)
    await crowd.work()

    assert crowd.breaker.frozen
    assert crowd.asked() == 1
    assert rows[wanted.id].phase.value == "Deleted"


async def test_deletions_that_were_asked_for_in_numbers_freeze_nothing() -> None:
    crowd = Crowd(40)
    rows = crowd.world.store.resources
    for wanted in crowd.resources[:10]:
        rows[wanted.id] = wanted.request_deletion(crowd.world.store.clock.now())

    crowd.lose(crowd.resources[:10], watch=False)
    await crowd.driver.sweep_records()

    assert not crowd.breaker.frozen
    assert len(crowd.breaker.missing) == 0


async def test_those_that_vanish_one_after_the_other_are_counted_together() -> None:
    crowd = Crowd(40)
    crowd.lose(crowd.resources[:FEW], watch=True)
    await crowd.work()
    assert crowd.asked() == FEW

    crowd.lose(crowd.resources[FEW : FEW + 1], watch=True)
    await crowd.work()

    assert crowd.asked() == FEW
    assert crowd.breaker.mode.causes == {BreakerCause.RECORDS_VANISHED}


async def test_one_that_is_waited_for_while_its_xr_lives_is_counted_once() -> None:
    crowd = Crowd(40)
    crowd.world.cluster.xr = ALIVE

    crowd.lose(crowd.resources[:FEW], watch=True)
    await crowd.work()

    assert crowd.asked() == 0
    assert not crowd.breaker.frozen


@pytest.mark.parametrize("asked", [True, False], ids=["going", "standing"])
async def test_what_goes_goes_on_beside_a_successor_of_its_record(asked: bool) -> None:
    crowd = Crowd(3)
    wanted = crowd.resources[0]
    rows = crowd.world.store.resources
    if asked:
        rows[wanted.id] = wanted.request_deletion(crowd.world.store.clock.now())
    crowd.records[crowd.where(wanted)]["metadata"]["uid"] = "uid-of-a-successor"

    await crowd.work()

    assert rows[wanted.id].phase.value == ("Deleted" if asked else "Ready")
    assert wanted.record.name in crowd.ticks.done


async def test_it_thaws_once_the_records_are_back_for_a_minute() -> None:
    crowd = Crowd(40)
    before = dict(crowd.records)
    crowd.lose(crowd.resources[:10], watch=True)
    await crowd.work()

    crowd.records.update(before)
    await crowd.driver.sweep_records()
    before_calm = crowd.breaker.frozen
    crowd.world.store.clock.advance(timedelta(seconds=CALM_S))
    await crowd.driver.watch()

    assert (before_calm, crowd.breaker.frozen) == (True, False)
    assert crowd.asked() == 0


async def test_a_persons_word_lets_what_vanished_be_torn_down() -> None:
    crowd = Crowd(40)
    crowd.lose(crowd.resources[:10], watch=True)
    await crowd.work()
    assert crowd.asked() == 0

    crowd.world.store.thaws.append((samples.CLUSTER, crowd.world.store.clock.now()))
    await crowd.driver.watch()
    await crowd.work()

    assert crowd.asked() == 10


async def test_a_cache_that_lost_many_is_listed_anew_and_thaws() -> None:
    crowd = Crowd(40)
    crowd.live |= {crowd.where(resource) for resource in crowd.resources}
    crowd.lose(crowd.resources[:10], watch=True)
    await crowd.work()
    assert crowd.breaker.mode.causes == {BreakerCause.RECORDS_VANISHED}

    for _ in range(2):
        await crowd.driver.watch()
        await crowd.work()
        crowd.world.store.clock.advance(timedelta(minutes=2))
    await crowd.driver.watch()

    assert not crowd.breaker.frozen
    assert crowd.asked() == 0


async def test_another_clusters_word_thaws_nothing() -> None:
    crowd = Crowd(40)
    crowd.lose(crowd.resources[:10], watch=True)
    await crowd.work()

    other = ids.management_cluster_id("elsewhere")
    crowd.world.store.thaws.append((other, crowd.world.store.clock.now()))
    await crowd.driver.watch()

    assert crowd.breaker.frozen


async def test_a_store_that_does_not_answer_freezes_and_one_that_is_slow_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = Crowd(3)
    judged: list[bool] = []

    async def slow(*_: object, **__: object) -> bool:
        judged.append(crowd.breaker.judge())
        return False

    async def away(*_: object, **__: object) -> bool:
        raise ConnectionRefusedError

    monkeypatch.setattr(InMemoryBrokerRepository, "thawed", slow)
    await crowd.driver.watch()
    assert judged == [False]

    monkeypatch.setattr(InMemoryBrokerRepository, "thawed", away)
    with pytest.raises(ConnectionRefusedError):
        await crowd.driver.watch()
    assert crowd.breaker.mode.causes == {BreakerCause.STORE_UNREACHABLE}


async def test_substrates_lost_in_numbers_freeze() -> None:
    crowd = Crowd(40)
    for resource in crowd.resources:
        crowd.driver.changed("provisioningrecords", crowd.where(resource))

    for resource in crowd.resources[:10]:
        raw = crowd.records[crowd.where(resource)]
        lost = {"type": "Stalled", "status": "True", "reason": "SubstrateLost"}
        raw["status"] = {"conditions": [lost]}
        crowd.driver.changed("provisioningrecords", crowd.where(resource))
    await crowd.driver.watch()

    assert crowd.breaker.mode.causes == {BreakerCause.SUBSTRATES_LOST}


async def test_substrates_that_were_lost_before_this_process_came_freeze_nothing() -> None:
    crowd = Crowd(40)
    lost = {"type": "Stalled", "status": "True", "reason": "SubstrateLost"}
    for resource in crowd.resources[:10]:
        crowd.records[crowd.where(resource)]["status"] = {"conditions": [lost]}

    for resource in crowd.resources:
        crowd.driver.changed("provisioningrecords", crowd.where(resource))
    await crowd.driver.watch()

    assert not crowd.breaker.frozen


async def _sweep(crowd: Crowd) -> list[str]:
    crowd.ticks.done.clear()
    await crowd.driver.sweep_records()
    await crowd.driver.queue.settle()
    return sorted(crowd.ticks.done)


async def test_what_did_not_change_rests_and_is_looked_at_once_in_ten_minutes() -> None:
    crowd = Crowd(100)

    first = await _sweep(crowd)
    later = [await _sweep(crowd) for _ in range(FULL_PASS)]

    assert len(first) == 100
    assert max(len(each) for each in later) < 50
    assert sorted(name for each in later for name in each) == first


async def test_a_changed_record_is_looked_at_by_the_next_sweep() -> None:
    crowd = Crowd(10)
    await _sweep(crowd)

    for resource in crowd.resources:
        crowd.records[crowd.where(resource)]["metadata"]["resourceVersion"] = "2"

    assert len(await _sweep(crowd)) == 10


async def test_so_is_a_changed_row() -> None:
    crowd = Crowd(10)
    await _sweep(crowd)

    for resource in crowd.resources:
        crowd.world.store.resources[resource.id] = replace(resource, version=7)

    assert len(await _sweep(crowd)) == 10


async def test_one_that_waits_for_its_node_is_looked_at_by_every_sweep() -> None:
    crowd = Crowd(10, role=MeshRole.NODE)
    await _sweep(crowd)

    assert len(await _sweep(crowd)) == 10


async def test_one_whose_tick_wants_to_come_back_does_not_rest() -> None:
    crowd = Crowd(10)
    crowd.ticks.again = 60.0
    await _sweep(crowd)

    assert len(await _sweep(crowd)) == 10


async def test_records_without_an_aggregate_are_looked_at_by_every_sweep() -> None:
    crowd = Crowd(10)
    crowd.world.store.resources.clear()
    await _sweep(crowd)

    assert len(await _sweep(crowd)) == 10


async def test_what_a_catalogue_may_admit_is_asked_for_and_nothing_else() -> None:
    crowd = Crowd(10)
    for resource in crowd.resources:
        admitted = {"type": "Admitted", "status": "True"}
        crowd.records[crowd.where(resource)]["status"] = {"conditions": [admitted]}
    refused = crowd.resources[0]
    crowd.records[crowd.where(refused)].pop("status")
    for resource in crowd.resources:
        crowd.driver.changed("provisioningrecords", crowd.where(resource))
    await crowd.driver.queue.settle()
    crowd.ticks.done.clear()

    crowd.driver.changed("blueprintversions", ("", "generic"))
    await crowd.driver.queue.settle()

    assert crowd.ticks.done == [refused.record.name]


async def test_a_sweep_looks_at_credentials_in_turn() -> None:
    crowd = Crowd(0)
    used = {CredentialKey(namespace="shop", credential=f"c{n:03}") for n in range(IN_TURN + 50)}

    first, second, third = (crowd.driver.sweep.in_turn(used, [("shop", "loose")]) for _ in "abc")

    assert (len(first), len(second), len(third)) == (IN_TURN + 1, 51, IN_TURN + 1)
    assert used.issubset({*first, *second})


@pytest.mark.parametrize(
    ("change", "news"),
    [
        ({"annotations": {"provisioning.plexsphere.com/force-release": "OPS-17"}}, True),
        ({"generation": 2}, True),
        ({"deletionTimestamp": "2026-11-23T00:00:00Z"}, True),
        ({"uid": "made-anew"}, True),
        ({"labels": {"team": "desk"}}, False),
        ({"resourceVersion": "99"}, False),
    ],
)
def test_what_somebody_else_wrote_of_a_record_is_news_and_its_status_is_none(
    change: dict[str, object], news: bool
) -> None:
    metadata: dict[str, object] = {"uid": "one", "generation": 1}
    before = {"metadata": metadata, "status": {"phase": "Ready"}}
    after = {"metadata": {**metadata, **change}, "status": {"phase": "Failed"}}

    assert (controller._news(after) != controller._news(before)) == news
