"""An XR with enrolled resources, deleted so that what it composed stays behind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest

from dev.kube import RefusedError
from dev.stack import Stack
from tests.e2e import enrol_world
from tests.e2e.enrol_pool import Pool, assert_same, called, held, until_still
from tests.e2e.enrol_world import AFTER, ENROLLED, ENTRY
from tests.e2e.world import API, CLOUD_API, Object, aggregate, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

NEVER = {"team": "checkout", "demo-boot": "never"}
RESOURCES = ("node-0", "node-1")


@dataclass(frozen=True, kw_only=True)
class Left:
    """What was there of a pool before its XR was deleted."""

    pool: Pool
    registered: bool
    resources: tuple[str, ...]
    handles: list[str]
    machines: list[Object]
    records: list[Object]
    network: Object
    abandoned: Object

    @classmethod
    def of(cls, pool: Pool, *resources: str, registered: bool) -> Left:
        handles = pool.until_settled(*resources, registered=registered)
        abandoned, records = pool.composed(AFTER), [pool.record(each) for each in resources]
        assert abandoned is not None
        return cls(
            pool=pool,
            registered=registered,
            resources=resources,
            handles=handles,
            machines=_found([pool.machine(handle) for handle in handles]),
            records=_found(records),
            network=pool.network(),
            abandoned=abandoned,
        )

    def assert_there(self) -> None:
        """Assert that nodes, machines and siblings are as they were, and held."""
        for handle, machine in zip(self.handles, self.machines, strict=True):
            self.pool.assert_untouched(handle, machine)
            found = self.pool.machine(handle)
            assert found is not None
            assert found["spec"] == machine["spec"]
            assert held(found)
        network = self.pool.network()
        assert_same(network, self.network)
        assert held(network)

    def until_orphaned(self, status: str) -> None:
        """Wait until every record says whether it has an XR."""
        wait_for(
            lambda: all(_orphaned(self.pool, each) == status for each in self.resources),
            f"Orphaned={status}",
            explain=self.pool.explain,
        )


def _found(items: list[Object | None]) -> list[Object]:
    assert None not in items
    return [item for item in items if item is not None]


@pytest.fixture(scope="module")
def orphaned(stack: Stack) -> dict[str, Left]:
    """Make pools, wait until all are at rest, and delete their XRs and nothing else."""
    enrol_world.install(stack, enrol_world.composition(ENROLLED, [ENTRY]))
    again = Pool(stack, "orphan-again").apply(2)
    never = Pool(stack, "orphan-never").apply(2, labels=NEVER)
    drained = Pool(stack, "orphan-drained").apply(1)
    left = {
        "again": Left.of(again, *RESOURCES, registered=True),
        "never": Left.of(never, *RESOURCES, registered=False),
        "drained": Left.of(drained, "node-0", registered=True),
    }
    until_still(again, never, drained)
    for each in left.values():
        each.pool.delete("Orphan")
    for each in left.values():
        wait_for(partial(_has_no_xr, each.pool), "the XR gone")
        each.until_orphaned("True")
    return left


def _has_no_xr(pool: Pool) -> bool:
    return pool.xr() is None


def _orphaned(pool: Pool, resource: str) -> str:
    return str(condition_of(pool.record(resource), "Orphaned").get("status", ""))


@pytest.mark.parametrize("name", ["again", "never"])
def test_an_xr_applied_again_adopts_nodes_and_siblings_that_its_orphaning_left(
    stack: Stack, orphaned: dict[str, Left], name: str
) -> None:
    left = orphaned[name]
    pool, handles, registered = left.pool, left.handles, left.registered
    left.assert_there()
    rows = [aggregate(stack.postgres.dsn, handle) for handle in handles]
    assert {row["status"] for row in rows if row} == {"Ready" if registered else "Enrolling"}
    assert [row["live_nodes"] for row in rows if row] == [int(registered)] * 2
    _assert_still_refused(left)

    pool.apply(2, labels=None if registered else NEVER)

    left.until_orphaned("False")
    assert pool.until_settled(*RESOURCES, registered=registered) == handles
    until_still(pool)
    left.assert_there()
    assert [_uid(pool.record(each)) for each in RESOURCES] == [_uid(each) for each in left.records]
    for handle in handles:
        _assert_adopted(left, handle)
    pool.delete("Background")
    # What Crossplane named itself it does not find again; it is not ours, and not held.
    pool.until_gone(but=[called(left.abandoned)])
    for handle in handles:
        pool.assert_drained(handle, registered=registered)


def _assert_still_refused(left: Left) -> None:
    targets = [(CLOUD_API, "Machine", handle) for handle in left.handles]
    targets.append(("v1", "ConfigMap", left.network["metadata"]["name"]))
    for api, kind, name in targets:
        with pytest.raises(RefusedError):
            left.pool.cluster.delete(api, kind, name, left.pool.namespace)


def _assert_adopted(left: Left, handle: str) -> None:
    """Assert that a machine is the new XR's, and that its node did not start over."""
    machine = left.pool.machine(handle)
    assert machine is not None
    owners = [each["uid"] for each in machine["metadata"]["ownerReferences"]]
    assert owners == [_uid(left.pool.xr())]
    events = [fact.what for fact in left.pool.facts(handle) if fact.source == "event"]
    begun = ["broker.ProvisionedResourceRequested", "broker.ProvisionedResourceReady"]
    assert events == begun[: 1 + int(left.registered)]


def _uid(found: Object | None) -> str:
    assert found is not None
    return str(found["metadata"]["uid"])


def test_an_orphaned_node_is_drained_when_its_record_is_deleted(orphaned: dict[str, Left]) -> None:
    left = orphaned["drained"]
    pool, network, (handle,) = left.pool, left.network, left.handles
    left.assert_there()

    name = left.records[0]["metadata"]["name"]
    pool.cluster.delete(API, "ProvisioningRecord", name, pool.namespace)

    wait_for(lambda: pool.record("node-0") is None, "the record gone", explain=pool.explain)
    pool.assert_drained(handle)
    assert_same(pool.network(), network)
    wait_for(lambda: not held(pool.network()), "what it held let go", explain=pool.explain)
    pool.cluster.delete("v1", "ConfigMap", network["metadata"]["name"], pool.namespace)
    wait_for(lambda: pool.left() == [called(left.abandoned)], "what it held gone")
