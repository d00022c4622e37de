"""The sweep for leftovers: both directions, believed after two looks, told once, never deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from reconciler.adapters.metrics.orphans import OrphanCollector
from reconciler.app.housekeeping import orphan_sweep
from reconciler.app.housekeeping.orphan_sweep import OrphanSweep
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity
from reconciler.domain.teardown.orphans import (
    REMEDY,
    Involved,
    MarkedObject,
    OrphanFinding,
    namespace,
)
from reconciler.ports.cluster.orphans import Kind
from tests.fakes.memory import FrozenClock, MemoryStore, NodeRow
from tests.fakes.orphans import (
    InMemoryMarkedObjects,
    InMemoryOrphanLedger,
    InMemoryOrphanTeller,
)
from tests.unit.reconciler import samples

VM: Kind = ("blueprints.plexsphere.com/v1alpha1", "XGenericVM")
SERVER: Kind = ("cloud.test/v1", "Server")


def _marked(name: str, kind: Kind = VM) -> MarkedObject:
    return MarkedObject(
        api_version=kind[0],
        kind=kind[1],
        namespace="shop",
        name=name,
        record=f"{name}-record",
        uid=f"{name}-uid",
    )


class Passing(InMemoryMarkedObjects):
    """Has some objects that only the first look finds."""

    passing: Sequence[MarkedObject] = ()

    async def list_marked(self, kind: Kind) -> Sequence[MarkedObject]:
        found = list(await super().list_marked(kind))
        return [*found, *(self.passing if self.asked.count(kind) == 1 else ())]


class Leftovers:
    """A cluster and a store, and the records that are in the cluster."""

    def __init__(self, *marked: MarkedObject) -> None:
        self.marked = Passing(there=list(marked))
        self.store = MemoryStore(clock=FrozenClock(samples.NOW))
        self.ledger = InMemoryOrphanLedger(self.store, samples.CLUSTER)
        self.teller = InMemoryOrphanTeller()
        self.records: dict[tuple[str, str], dict[str, Any]] = {}

    def keep(self, name: str, kind: Kind = VM, **changes: Any) -> ProvisionedResource:
        """Store an aggregate of a record, whose substrate has this name."""
        reference = SubstrateReference(api_version=kind[0], kind=kind[1], name=name)
        identity = ids.ProvisionedResourceID(uuid7())
        kept = samples.resource(
            id=identity,
            xr_name=names.xr_name(identity),
            key=replace(samples.resource().key, namespace="shop", name=name),
            record=RecordIdentity(name=f"{name}-record", uid=f"uid-of-{name}"),
            protected=(ProtectedObject(reference=reference),),
            **changes,
        )
        self.store.resources[kept.id] = kept
        return kept

    def node_of(self, kept: ProvisionedResource) -> NodeRow:
        """Store a node of an aggregate."""
        node = NodeRow(
            id=ids.NodeID(uuid4()),
            project_id=kept.project_id,
            domain_id=UUID(int=1),
            resource_id=kept.id,
            token_id=ids.BootstrapTokenID(uuid4()),
            public_key=b"",
            mesh_ip="100.64.0.1",
            nsk_digest=b"",
            registered_at=samples.NOW,
        )
        self.store.nodes[node.id] = node
        return node

    def process(self) -> OrphanSweep:
        """Begin a process that sweeps."""
        return OrphanSweep(
            self.marked,
            self.ledger,
            self.teller,
            records=lambda: self.records,
            kinds=lambda: [VM],
            second_look_s=0.0,
        )


async def test_a_substrate_that_nobody_knows_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left = Leftovers(_marked("pr-1"))
    sweep = left.process()

    with caplog.at_level(logging.WARNING):
        first = await sweep.sweep()
        second = await sweep.sweep()

    assert (first, second, left.ledger.writes) == (1, 1, 1)
    assert [item.subject for item in left.ledger.standing] == [
        "XGenericVM.blueprints.plexsphere.com shop/pr-1"
    ]
    assert [record.message.split()[0] for record in caplog.records] == ["orphan_found"]


async def test_its_event_is_about_itself_and_is_told_once() -> None:
    left = Leftovers(_marked("pr-1"))
    sweep = left.process()

    for _ in range(2):
        await sweep.sweep()

    (told,) = left.teller.told
    assert told.involved == Involved(
        api_version=VM[0], kind=VM[1], namespace="shop", name="pr-1", uid="pr-1-uid"
    )
    assert told.finding.event_reason == "SubstrateWithoutRecord"
    assert "created for record pr-1-record: nothing deletes it" in told.message


async def test_one_that_comes_again_is_told_again() -> None:
    left = Leftovers(_marked("pr-1"))
    sweep = left.process()

    for marked in ([_marked("pr-1")], [], [_marked("pr-1")]):
        left.marked.there = marked
        await sweep.sweep()

    assert len(left.teller.told) == 2


async def test_one_whose_event_is_refused_delays_no_other_and_is_tried_again() -> None:
    left = Leftovers(_marked("pr-1"), _marked("pr-2"))
    left.teller.refused = {_marked("pr-1").orphan.subject}
    sweep = left.process()
    await sweep.sweep()
    assert left.teller.told == [_marked("pr-2").orphan]
    left.teller.refused.clear()

    await sweep.sweep()

    assert left.teller.told == [_marked("pr-2").orphan, _marked("pr-1").orphan]


async def test_many_that_are_refused_each_time_keep_nobody_else_untold(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(orphan_sweep, "EVENTS_MAX", 2)
    left = Leftovers(*(_marked(f"pr-{number}") for number in range(4)))
    left.teller.refused = {_marked(f"pr-{number}").orphan.subject for number in range(2)}
    sweep = left.process()

    for _ in range(2):
        await sweep.sweep()

    assert left.teller.told == [_marked("pr-2").orphan, _marked("pr-3").orphan]
    failed = [text for text in caplog.messages if text.startswith("orphan_events_failed")]
    assert failed == ["orphan_events_failed count=2 first=OSError"]


async def test_very_many_are_told_over_several_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_sweep, "EVENTS_MAX", 2)
    left = Leftovers(*(_marked(f"pr-{number}") for number in range(3)))
    sweep = left.process()
    await sweep.sweep()
    assert len(left.teller.told) == 2

    await sweep.sweep()

    assert len(set(left.teller.told)) == len(left.teller.told) == 3


async def test_a_substrate_with_a_record_or_an_aggregate_is_none() -> None:
    left = Leftovers(_marked("pr-1"), _marked("pr-2", SERVER))
    left.keep("pr-2", SERVER, deletion_requested_at=samples.NOW)
    left.records["shop", "pr-1-record"] = {}

    assert await left.process().sweep() == 0


async def test_kinds_of_the_catalogue_and_of_the_past_are_listed() -> None:
    left = Leftovers()
    left.keep("pr-1", SERVER, phase=Phase.DELETED, deletion_requested_at=samples.NOW)

    await left.process().sweep()

    assert left.marked.asked == sorted([VM, SERVER])


async def test_what_only_the_first_look_finds_is_on_its_way() -> None:
    left = Leftovers()
    left.marked.passing = [_marked("pr-1")]

    assert await left.process().sweep() == 0
    assert left.ledger.writes == 0


async def test_an_aggregate_whose_record_is_gone_is_told() -> None:
    left = Leftovers()
    missing, _ = left.keep("pr-1"), left.keep("pr-2")
    left.records["shop", "pr-2-record"] = {}

    await left.process().sweep()

    assert [(item.finding, item.subject) for item in left.ledger.standing] == [
        (OrphanFinding.RECORD_MISSING, missing.xr_name)
    ]
    (told,) = left.teller.told
    assert told.involved == namespace("shop")


async def test_a_node_that_force_release_left_in_the_mesh_is_told() -> None:
    left = Leftovers()
    kept = left.keep("pr-1", phase=Phase.DELETED, deletion_requested_at=samples.NOW)
    node = left.node_of(kept)

    await left.process().sweep()

    (found,) = left.ledger.standing
    assert (found.finding, found.subject) == (OrphanFinding.NODE_OF_DELETED, f"node {node.id}")


async def test_the_sweep_ends_though_a_call_makes_an_error_of_its_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def cut_off(_: Kind) -> Sequence[MarkedObject]:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            message = "the call was cut off"
            raise ConnectionError(message) from None
        return []

    left = Leftovers()
    monkeypatch.setattr(left.marked, "list_marked", cut_off)
    task = asyncio.create_task(left.process().run(timedelta(hours=1)))
    await begun.wait()
    task.cancel()
    ended, _ = await asyncio.wait([task], timeout=1)
    task.cancel()

    assert ended == {task}


async def test_a_kind_that_may_not_be_listed_is_told_and_stops_no_other() -> None:
    left = Leftovers(_marked("pr-1", SERVER))
    left.keep("pr-3", SERVER, deletion_requested_at=samples.NOW)
    left.marked.forbidden.add(VM)

    await left.process().sweep()

    assert {item.finding for item in left.ledger.standing} == {
        OrphanFinding.KIND_UNLISTED,
        OrphanFinding.SUBSTRATE_WITHOUT_RECORD,
    }


async def test_what_is_mended_is_over() -> None:
    left = Leftovers(_marked("pr-1"))
    sweep = left.process()
    await sweep.sweep()
    left.marked.there.clear()

    assert await sweep.sweep() == 0
    assert left.ledger.standing == set()


async def test_what_stands_is_counted_by_finding() -> None:
    left = Leftovers(_marked("pr-1"), _marked("pr-2"))
    left.keep("pr-3", SERVER, deletion_requested_at=samples.NOW)
    left.marked.forbidden.add(SERVER)
    sweep = left.process()
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


@pytest.mark.parametrize("finding", list(OrphanFinding))
def test_every_finding_has_a_remedy(finding: OrphanFinding) -> None:
    assert REMEDY[finding]
