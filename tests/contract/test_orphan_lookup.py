"""What the orphan sweep's two ports in the cluster promise, on fakes and on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import uuid4

import pytest

from function.contract import names
from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.objects.marked_objects import KubernetesMarkedObjects
from reconciler.adapters.kubernetes.objects.orphan_events import KubernetesOrphanReporter
from reconciler.adapters.kubernetes.objects.writes import anybody
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.domain.teardown.orphans import (
    MarkedObject,
    Orphan,
    OrphanFinding,
    namespace,
    unlisted,
)
from reconciler.ports.cluster.orphans import Kind, MarkedObjects, OrphanReporter
from reconciler.ports.cluster.substrates import NotAllowedError
from tests.contract import cluster_worlds
from tests.contract.cluster_worlds import VM, real_world, reconciler_kubeconfig
from tests.e2e.deploy.identity import wait_until
from tests.fakes.orphans import InMemoryMarkedObjects, InMemoryOrphanTeller

pytestmark = pytest.mark.contract

KIND: Final[Kind] = (f"{VM[0]}/v1alpha1", VM[1])
FORBIDDEN: Final[Kind] = ("v1", "ConfigMap")
Told = tuple[str, str, str, str]
"""Reason, message, and kind and name of what an Event is about."""


class World(Protocol):
    """A namespace, and what is in it."""

    namespace: str

    @property
    def marked(self) -> MarkedObjects:
        """What lists."""

    @property
    def teller(self) -> OrphanReporter:
        """What tells."""

    def compose(self, name: str, *, record: str | None) -> MarkedObject:
        """Make an object of KIND, with the record label or without it."""

    def remove(self, name: str) -> None:
        """Take it away again."""

    def end(self) -> None:
        """Delete the namespace, and have it stay for what is in it."""

    def events(self) -> Sequence[Told]:
        """Return the warnings in the namespace."""


@dataclass
class MemoryWorld:
    namespace: str = "shop"
    marked: InMemoryMarkedObjects = field(
        default_factory=lambda: InMemoryMarkedObjects(forbidden={FORBIDDEN})
    )
    teller: InMemoryOrphanTeller = field(default_factory=InMemoryOrphanTeller)

    def compose(self, name: str, *, record: str | None) -> MarkedObject:
        made = _marked(self.namespace, name, record, str(uuid4()))
        if record is not None:
            self.marked.there.append(made)
        return made

    def remove(self, name: str) -> None:
        self.marked.there = [item for item in self.marked.there if item.name != name]

    def end(self) -> None:
        self.teller.going.add(self.namespace)

    def events(self) -> Sequence[Told]:
        stands = self.teller.events.values()
        return [
            (item.finding.event_reason, item.message, item.involved.kind, item.involved.name)
            for item in stands
            if item.involved is not None
        ]


class RealWorld:
    """A namespace of a real API server; the reconciler's own account lists and tells."""

    def __init__(self, real: cluster_worlds.RealWorld, client: KubernetesClient) -> None:
        self._real = real
        self.namespace = real.namespace
        self.marked = KubernetesMarkedObjects(client)
        self.teller = KubernetesOrphanReporter(client, anybody)

    def compose(self, name: str, *, record: str | None) -> MarkedObject:
        uid = self._real.compose(_reference(name))
        if record is not None:
            labels = {"metadata": {"labels": {names.LABEL_RECORD: record}}}
            assert self._real.admin.patch(f"{self._real.all(VM)}/{name}", labels).ok
        return _marked(self.namespace, name, record, uid)

    def remove(self, name: str) -> None:
        self._real.remove(_reference(name))

    def end(self) -> None:
        self._real.new_record()
        assert self._real.admin.delete(self._real.path).ok
        wait_until(
            lambda: "deletionTimestamp" in self._real.admin.get(self._real.path).body["metadata"],
            timeout_s=10.0,
            what="the namespace is in deletion",
        )

    def events(self) -> Sequence[Told]:
        found = self._real.admin.get(f"{self._real.path}/events").body["items"]
        return [
            (
                item["reason"],
                item["message"],
                item["involvedObject"]["kind"],
                item["involvedObject"]["name"],
            )
            for item in found
            if item["type"] == "Warning"
        ]


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    plane = cluster_worlds.shared_control_plane(request.config, tmp_path_factory)
    async with real_world(plane) as real:
        client = await open_client(reconciler_kubeconfig(plane))
        yield RealWorld(real, client)
        await client.close()


def _reference(name: str) -> SubstrateReference:
    return SubstrateReference(api_version=KIND[0], kind=KIND[1], name=name)


def _marked(namespace: str, name: str, record: str | None, uid: str) -> MarkedObject:
    return MarkedObject(
        api_version=KIND[0],
        kind=KIND[1],
        namespace=namespace,
        name=name,
        record=record or "somebodys",
        uid=uid,
    )


async def _listed(world: World) -> list[MarkedObject]:
    found = await world.marked.list_marked(KIND)
    return sorted(
        (item for item in found if item.namespace == world.namespace), key=lambda item: item.name
    )


async def test_what_carries_the_record_label_is_listed_and_nothing_else(world: World) -> None:
    one = world.compose("vm-1", record="web-1")
    world.compose("vm-2", record=None)
    three = world.compose("vm-3", record="web-3")

    assert await _listed(world) == [one, three]


async def test_what_is_gone_is_listed_no_more(world: World) -> None:
    world.compose("vm-1", record="web-1")
    world.remove("vm-1")

    assert await _listed(world) == []


async def test_a_kind_that_is_not_served_has_no_objects(world: World) -> None:
    assert list(await world.marked.list_marked(("none.test/v1", "None"))) == []


async def test_a_kind_that_may_not_be_listed_is_told_apart(world: World) -> None:
    with pytest.raises(NotAllowedError, match="cannot list ConfigMap in v1"):
        await world.marked.list_marked(FORBIDDEN)


async def test_a_finding_is_told_at_its_object_and_once_while_its_event_is_there(
    world: World,
) -> None:
    orphan = world.compose("vm-1", record=None).orphan

    for _ in range(2):
        await world.teller.tell(orphan)

    assert list(world.events()) == [("SubstrateWithoutRecord", orphan.message, VM[1], "vm-1")]


async def test_two_objects_of_one_name_are_told_of_each(world: World) -> None:
    for _ in range(2):
        await world.teller.tell(world.compose("vm-1", record=None).orphan)
        world.remove("vm-1")

    assert len(world.events()) == 2


async def test_what_has_no_object_is_told_at_the_namespace_each_by_itself(world: World) -> None:
    for number in range(2):
        node = Orphan(
            finding=OrphanFinding.NODE_OF_DELETED,
            subject=f"node {number}",
            detail="of pr-1",
            involved=namespace(world.namespace),
        )
        await world.teller.tell(node)

    told = sorted(world.events())
    assert [(reason, kind, name) for reason, _, kind, name in told] == [
        ("NodeOfDeleted", "Namespace", world.namespace)
    ] * 2
    assert [message.split(",")[0] for _, message, _, _ in told] == ["node 0", "node 1"]


async def test_a_kind_has_no_object_and_no_event(world: World) -> None:
    await world.teller.tell(unlisted("none.test/v1", "None"))

    assert list(world.events()) == []


async def test_a_namespace_that_goes_takes_none_and_that_is_success(world: World) -> None:
    world.end()
    gone = Orphan(
        finding=OrphanFinding.RECORD_MISSING,
        subject="pr-1",
        detail="it is gone",
        involved=namespace(world.namespace),
    )

    await world.teller.tell(gone)

    assert list(world.events()) == []
