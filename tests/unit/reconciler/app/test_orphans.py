"""The sweep for leftovers: both directions, believed after two looks, told once, never deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from reconciler.adapters.metrics.leftovers import OrphanCollector
from reconciler.app import orphan_sweep
from reconciler.app.orphan_sweep import OrphanSweep
from reconciler.domain.broker.orphans import (
    REMEDY,
    Finding,
    Involved,
    Marked,
    Orphan,
    Unrecorded,
    namespace,
)
from reconciler.ports.cluster import NotAllowedError
from reconciler.ports.orphans import Kind

VM: Kind = ("blueprints.plexsphere.com/v1alpha1", "XGenericVM")
SERVER: Kind = ("cloud.test/v1", "Server")


def _marked(name: str, kind: Kind = VM) -> Marked:
    return Marked(
        api_version=kind[0],
        kind=kind[1],
        namespace="shop",
        name=name,
        record=f"{name}-record",
        uid=f"{name}-uid",
    )


@dataclass
class Leftovers:
    """A cluster and a store; `passing` holds what only the first look finds."""

    marked: list[Marked] = field(default_factory=list)
    passing: list[Marked] = field(default_factory=list)
    protected: set[str] = field(default_factory=set)
    records: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    expected: list[Unrecorded] = field(default_factory=list)
    nodes: list[Orphan] = field(default_factory=list)
    forbidden: set[Kind] = field(default_factory=set)
    seen: list[Kind] = field(default_factory=list)
    open: set[Orphan] = field(default_factory=set)
    writes: int = 0
    told: list[Orphan] = field(default_factory=list)
    untold: set[str] = field(default_factory=set)

    async def list_marked(self, kind: Kind) -> Sequence[Marked]:
        self.seen.append(kind)
        if kind in self.forbidden:
            message = f"cannot list {kind[1]}"
            raise NotAllowedError(message)
        found = [*self.marked, *(self.passing if self.seen.count(kind) == 1 else ())]
        return [item for item in found if (item.api_version, item.kind) == kind]

    async def kinds(self) -> Sequence[Kind]:
        return [SERVER]

    async def unprotected(self, marked: Sequence[Marked]) -> Sequence[Marked]:
        return [item for item in marked if item.name not in self.protected]

    async def expected_records(self) -> Sequence[Unrecorded]:
        return self.expected

    async def left_nodes(self) -> Sequence[Orphan]:
        return self.nodes

    async def tell(self, orphan: Orphan) -> None:
        if orphan.subject in self.untold:
            raise OSError
        self.told.append(orphan)

    async def settle(self, found: Collection[Orphan]) -> Sequence[Orphan]:
        fresh = set(found) - self.open
        self.writes += self.open != set(found)
        self.open = set(found)
        return list(fresh)


def _sweep(left: Leftovers) -> OrphanSweep:
    return OrphanSweep(
        left, left, left, records=lambda: left.records, kinds=lambda: [VM], second_look_s=0.0
    )


async def test_a_substrate_that_nobody_knows_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left = Leftovers(marked=[_marked("pr-1")])
    sweep = _sweep(left)

    with caplog.at_level(logging.WARNING):
        first = await sweep.sweep()
        second = await sweep.sweep()

    assert (first, second, left.writes) == (1, 1, 1)
    assert [item.subject for item in left.open] == [
        "XGenericVM.blueprints.plexsphere.com shop/pr-1"
    ]
    assert [record.message.split()[0] for record in caplog.records] == ["orphan_found"]


async def test_its_event_is_about_itself_and_is_told_once() -> None:
    left = Leftovers(marked=[_marked("pr-1")])
    sweep = _sweep(left)

    for _ in range(2):
        await sweep.sweep()

    (told,) = left.told
    assert told.involved == Involved(
        api_version=VM[0], kind=VM[1], namespace="shop", name="pr-1", uid="pr-1-uid"
    )
    assert told.finding.event_reason == "SubstrateWithoutRecord"
    assert "made for record pr-1-record: nobody will delete it" in told.message


async def test_one_that_comes_again_is_told_again() -> None:
    left = Leftovers(marked=[_marked("pr-1")])
    sweep = _sweep(left)

    for marked in ([_marked("pr-1")], [], [_marked("pr-1")]):
        left.marked = marked
        await sweep.sweep()

    assert len(left.told) == 2


async def test_one_whose_event_is_refused_delays_no_other_and_is_tried_again() -> None:
    left = Leftovers(marked=[_marked("pr-1"), _marked("pr-2")])
    left.untold = {_marked("pr-1").orphan.subject}
    sweep = _sweep(left)
    await sweep.sweep()
    assert left.told == [_marked("pr-2").orphan]
    left.untold.clear()

    await sweep.sweep()

    assert left.told == [_marked("pr-2").orphan, _marked("pr-1").orphan]


async def test_many_that_are_refused_each_time_keep_nobody_else_untold(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(orphan_sweep, "EVENTS_MAX", 2)
    left = Leftovers(marked=[_marked(f"pr-{number}") for number in range(4)])
    left.untold = {_marked(f"pr-{number}").orphan.subject for number in range(2)}
    sweep = _sweep(left)

    for _ in range(2):
        await sweep.sweep()

    assert left.told == [_marked("pr-2").orphan, _marked("pr-3").orphan]
    failed = [text for text in caplog.messages if text.startswith("orphan_events_failed")]
    assert failed == ["orphan_events_failed count=2 first=OSError"]


async def test_very_many_are_told_over_several_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_sweep, "EVENTS_MAX", 2)
    left = Leftovers(marked=[_marked(f"pr-{number}") for number in range(3)])
    sweep = _sweep(left)
    await sweep.sweep()
    assert len(left.told) == 2

    await sweep.sweep()

    assert len(set(left.told)) == len(left.told) == 3


async def test_a_substrate_with_a_record_or_an_aggregate_is_none() -> None:
    left = Leftovers(marked=[_marked("pr-1"), _marked("pr-2", SERVER)], protected={"pr-2"})
    left.records["shop", "pr-1-record"] = {}

    assert await _sweep(left).sweep() == 0


async def test_kinds_of_the_catalogue_and_of_the_past_are_listed() -> None:
    left = Leftovers()

    await _sweep(left).sweep()

    assert left.seen == sorted([VM, SERVER])


async def test_what_only_the_first_look_finds_is_on_its_way() -> None:
    left = Leftovers(passing=[_marked("pr-1")])

    assert await _sweep(left).sweep() == 0
    assert left.writes == 0


async def test_an_aggregate_whose_record_is_gone_is_told() -> None:
    missing = Unrecorded(namespace="shop", record="web-1-abc", handle="pr-1")
    there = Unrecorded(namespace="shop", record="web-2-abc", handle="pr-2")
    left = Leftovers(expected=[missing, there], records={("shop", "web-2-abc"): {}})

    await _sweep(left).sweep()

    assert [(item.finding, item.subject) for item in left.open] == [
        (Finding.RECORD_MISSING, "pr-1")
    ]
    (told,) = left.told
    assert told.involved == namespace("shop")


async def test_a_node_that_force_release_left_in_the_mesh_is_told() -> None:
    node = Orphan(finding=Finding.NODE_OF_DELETED, subject="node n", detail="of pr-1")
    left = Leftovers(nodes=[node])

    await _sweep(left).sweep()

    assert left.open == {node}


async def test_the_sweep_ends_though_a_call_makes_an_error_of_its_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def cut_off(_: Kind) -> Sequence[Marked]:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            message = "the call was cut off"
            raise ConnectionError(message) from None
        return []

    left = Leftovers()
    monkeypatch.setattr(left, "list_marked", cut_off)
    task = asyncio.create_task(_sweep(left).run(timedelta(hours=1)))
    await begun.wait()
    task.cancel()
    ended, _ = await asyncio.wait([task], timeout=1)
    task.cancel()

    assert ended == {task}


async def test_a_kind_that_may_not_be_listed_is_told_and_stops_no_other() -> None:
    left = Leftovers(marked=[_marked("pr-1", SERVER)], forbidden={VM})

    await _sweep(left).sweep()

    assert {item.finding for item in left.open} == {
        Finding.KIND_UNLISTED,
        Finding.SUBSTRATE_WITHOUT_RECORD,
    }


async def test_what_is_mended_is_over() -> None:
    left = Leftovers(marked=[_marked("pr-1")])
    sweep = _sweep(left)
    await sweep.sweep()
    left.marked.clear()

    assert await sweep.sweep() == 0
    assert left.open == set()


async def test_what_stands_is_counted_by_finding() -> None:
    left = Leftovers(marked=[_marked("pr-1"), _marked("pr-2")], forbidden={SERVER})
    sweep = _sweep(left)
    collector = OrphanCollector(lambda: sweep.standing)
    assert [family.samples for family in collector.collect()] == [[]]

    await sweep.sweep()

    (family,) = collector.collect()
    counted = {sample.labels["finding"]: sample.value for sample in family.samples}
    assert counted == {
        "substrate-without-record": 2,
        "record-missing": 0,
        "node-of-deleted": 0,
        "kind-unlisted": 1,
    }


def test_a_standby_counts_nothing() -> None:
    (family,) = OrphanCollector(lambda: None).collect()

    assert family.samples == []


@pytest.mark.parametrize("finding", list(Finding))
def test_every_finding_has_a_remedy(finding: Finding) -> None:
    assert REMEDY[finding]
