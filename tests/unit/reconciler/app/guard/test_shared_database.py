"""Management clusters on one database: a Project that Git applied to two, and one renamed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from function.contract.conditions import ConditionType, find
from function.contract.strategy import Phase
from reconciler.app.guard import cluster_identity
from reconciler.domain.aggregate import ids
from tests.fakes.census import InMemoryCensus
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import ALIVE, World

OTHER = ids.management_cluster_id("elsewhere")
UIDS = pytest.mark.parametrize("uid", ["record-there", "record-1"], ids=["its own", "of a backup"])


async def _ready() -> World:
    here = World()
    here.store.clusters[samples.CLUSTER] = "local"
    await here.until_ready()
    return here


async def _both(uid: str) -> tuple[World, World]:
    here = await _ready()
    there = World(store=here.store, cluster_id=OTHER)
    assert here.raw["metadata"]["uid"] == "record-1"
    there.raw["metadata"]["uid"] = uid
    return here, there


async def _renamed() -> tuple[World, World]:
    """Return a cluster with a live node, and the same one under another name."""
    here = await _ready()
    raw = copy.deepcopy(here.raw)
    return here, World(store=here.store, cluster_id=OTHER, raw=raw, cluster=here.cluster)


def _says(world: World, condition: ConditionType) -> tuple[str, str, str]:
    said = find(world.status, condition)
    assert said is not None
    return said.status, said.reason, said.message


def _told(world: World) -> dict[str, Any]:
    return {name: value for name, value in world.status.items() if name != "conditions"}


def _assert_lives(here: World) -> None:
    assert here.resource.phase is Phase.READY
    assert [node.deregistered_at for node in here.store.nodes.values()] == [None]


@UIDS
async def test_what_lives_elsewhere_is_refused_and_is_not_adopted(uid: str) -> None:
    here, there = await _both(uid)
    before = here.resource

    await there.tick()

    status, reason, message = _says(there, ConditionType.ADMITTED)
    assert (status, reason) == ("False", "LivesElsewhere")
    assert "exists on management cluster 'local'" in message
    assert list(here.store.resources.values()) == [before]


@UIDS
async def test_what_lives_elsewhere_is_told_once_and_costs_no_other_write(uid: str) -> None:
    _, there = await _both(uid)

    again = [await there.tick() for _ in range(3)]

    assert again == [None, None, None]
    assert [entry.partition(" ")[0] for entry in there.cluster.journal] == ["write"]


async def test_a_deletion_here_takes_no_node_out_that_lives_there() -> None:
    here, there = await _both("record-there")
    await there.tick()
    there.raw["metadata"]["deletionTimestamp"] = samples.NOW.isoformat()

    await there.tick_until_quiet()

    assert not there.finalizer
    _assert_lives(here)


async def test_a_refusal_under_a_new_name_keeps_what_the_status_told() -> None:
    _, there = await _renamed()
    before = _told(there)
    assert {"phase", "node", "accepted", "xrName"} <= before.keys()

    await there.tick()

    assert _says(there, ConditionType.STALLED)[:2] == ("True", "LivesElsewhere")
    assert _told(there) == before


async def test_a_record_that_lives_under_the_old_name_keeps_its_finalizer() -> None:
    here, there = await _renamed()
    before = _told(there)
    there.delete(xr=ALIVE)

    await there.tick_until_quiet()

    assert there.finalizer
    status, reason, message = _says(there, ConditionType.STALLED)
    assert (status, reason) == ("True", "LivesElsewhere")
    assert "belongs to management cluster 'local'" in message
    assert _told(there) == before
    _assert_lives(here)


async def test_a_drained_record_of_the_old_name_does_not_have_its_substrate_dropped() -> None:
    here, there = await _renamed()
    there.raw["spec"]["drain"] = True

    await there.tick()

    assert there.status["substrate"] == "Present"
    _assert_lives(here)


async def test_an_unreadable_record_of_the_old_name_keeps_its_finalizer() -> None:
    here, there = await _renamed()
    there.delete(xr=ALIVE)
    there.raw["spec"] = {"declaration": {}}

    await there.tick_until_quiet()

    assert there.finalizer
    assert _says(there, ConditionType.STALLED)[:2] == ("True", "LivesElsewhere")
    _assert_lives(here)


@pytest.mark.parametrize("readable", [True, False])
async def test_once_it_is_deleted_there_its_record_goes(readable: bool) -> None:
    here, there = await _renamed()
    resource = here.resource
    here.store.resources[resource.id] = replace(
        resource, phase=Phase.DELETED, deletion_requested_at=samples.NOW
    )
    there.delete(xr=ALIVE)
    if not readable:
        there.raw["spec"] = {"declaration": {}}

    await there.tick()

    assert not there.finalizer


class Asked(InMemoryCensus):
    """Remembers how many it was asked for at once."""

    sizes: Sequence[int] = ()

    async def elsewhere_by_record(self, uids: Sequence[str]) -> str | None:
        self.sizes = [*self.sizes, len(uids)]
        return await super().elsewhere_by_record(uids)


async def test_records_of_another_cluster_are_found_among_thousands() -> None:
    here = await _ready()
    uids = [
        *(f"uid-{number}" for number in range(cluster_identity.CHUNK)),
        here.resource.record.uid,
    ]
    mine, other = Asked(here.store, samples.CLUSTER), Asked(here.store, OTHER)

    assert await cluster_identity.elsewhere(other, uids) == "local"
    assert await cluster_identity.elsewhere(mine, uids) is None

    assert mine.sizes == other.sizes == [cluster_identity.CHUNK, 1]


async def test_nobody_is_asked_for_no_records() -> None:
    census = Asked((await _ready()).store, OTHER)

    assert await cluster_identity.elsewhere(census, []) is None
    assert census.sizes == ()
