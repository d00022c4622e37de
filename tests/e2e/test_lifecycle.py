"""From Git to Ready and back by every way that somebody can delete something."""

from __future__ import annotations

import pytest

from dev.stack import Stack
from tests.e2e.conftest import DELAYS, MakeNode, delayed
from tests.e2e.world import CLOUD_API, TIMEOUT_S, Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

BREAKER_S = 300.0
"""A node that is replaced seconds after its birth spends its XR's tokens (burst 100, one a
second); Crossplane then lets one event through every 30 s."""

NEVER = {"demo-boot": "never"}
PIPELINES = [None, *(delayed(seconds) for seconds in DELAYS)]


@pytest.fixture(params=[True, False], ids=["registered", "never-came"])
def registered(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=PIPELINES, ids=["prompt", *(f"delay-{s}" for s in DELAYS)])
def node(request: pytest.FixtureRequest, make_node: MakeNode, *, registered: bool) -> Node:
    labels = {} if registered else NEVER
    made = make_node(labels=labels, composition=request.param)
    return made.apply()


def _settled(node: Node, *, registered: bool, timeout_s: float = TIMEOUT_S) -> str:
    if registered:
        return node.until_ready(timeout_s=timeout_s)
    return node.until_enrolling(timeout_s=timeout_s)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_the_xr_takes_the_node_out_first(
    node: Node, *, registered: bool, propagation: str
) -> None:
    handle = _settled(node, registered=registered)

    node.delete(propagation=propagation)

    node.until_gone(handle)
    node.assert_ordered(handle, registered=registered)
    node.assert_nothing_left(handle)
    node.assert_created_once(handle)


def test_an_orphaned_record_keeps_everything_until_it_is_deleted(
    node: Node, *, registered: bool
) -> None:
    handle = _settled(node, registered=registered)
    machine = node.machine(handle)

    node.delete(propagation="Orphan")

    wait_for(lambda: condition_of(node.record(), "Orphaned").get("status") == "True", "Orphaned")
    wait_for(lambda: node.xr() is None, "the XR gone")
    left = node.machine(handle)
    assert machine is not None
    assert left is not None
    assert left["metadata"]["uid"] == machine["metadata"]["uid"]

    node.delete_record()

    node.until_gone(handle)
    node.assert_ordered(handle, registered=registered)
    node.assert_nothing_left(handle)


def test_a_record_deleted_by_hand_is_replaced(node: Node, *, registered: bool) -> None:
    handle = _settled(node, registered=registered)
    old = node.record()
    assert old is not None

    node.delete_record()

    wait_for(
        lambda: (node.record() or old)["metadata"]["uid"] != old["metadata"]["uid"], "a new record"
    )
    fresh = _settled(node, registered=registered, timeout_s=BREAKER_S)
    assert fresh != handle
    node.assert_ordered(handle, registered=registered)
    node.assert_nothing_left(handle)
    node.assert_created_once(handle)
    node.assert_created_once(fresh)
    node.delete(propagation="Background")
    node.until_gone(fresh)


def test_an_xr_applied_again_adopts_what_its_orphaning_left(make_node: MakeNode) -> None:
    node = make_node().apply()
    handle = node.until_ready()
    machine = node.machine(handle)
    record = node.record()
    assert machine is not None
    assert record is not None
    node.delete(propagation="Orphan")
    wait_for(lambda: condition_of(node.record(), "Orphaned").get("status") == "True", "Orphaned")
    wait_for(lambda: node.xr() is None, "the XR gone")

    node.apply()

    assert node.until_ready() == handle
    again = node.machine(handle)
    assert again is not None
    assert again["metadata"]["uid"] == machine["metadata"]["uid"]
    assert again["spec"] == machine["spec"]
    wait_for(lambda: condition_of(node.record(), "Orphaned").get("status") == "False", "owned")
    node.delete(propagation="Background")
    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_reconciler_killed_in_the_middle_of_teardown_finishes_it(
    stack: Stack, make_node: MakeNode, propagation: str
) -> None:
    node = make_node(labels={"demo-delete": "hang"}).apply()
    handle = node.until_ready()
    node.delete(propagation=propagation)
    wait_for(lambda: node.phase() == "Deprovisioning", "Deprovisioning")

    stack.kill_reconciler()
    lifted = {"cloud.demo.plexsphere.com/delete": "lifted"}
    metadata = {"name": handle, "namespace": node.namespace, "annotations": lifted}
    node.cluster.apply({"apiVersion": CLOUD_API, "kind": "Machine", "metadata": metadata})
    stack.start_reconciler()

    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)
    node.assert_nothing_left(handle)
