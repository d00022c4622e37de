"""From Git to Ready and back by every way that somebody can delete something."""

from __future__ import annotations

import pytest

from dev.stack import Stack
from tests.e2e.conftest import DELAYS, PIPELINE_IDS, PIPELINES, MakeNode, delayed
from tests.e2e.world import CLOUD_API, TIMEOUT_S, Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

REPLACED_S = 150.0
"""Two lives in a row on a loaded machine."""

NEVER = {"demo-boot": "never"}


@pytest.fixture(params=[True, False], ids=["registered", "never-came"])
def registered(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=PIPELINES, ids=PIPELINE_IDS)
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
    node.until_still()

    node.delete(propagation="Orphan")

    wait_for(lambda: condition_of(node.record(), "Orphaned").get("status") == "True", "Orphaned")
    wait_for(lambda: node.xr() is None, "the XR gone")
    left = node.machine(handle)
    assert machine is not None
    assert left is not None
    assert left["metadata"]["uid"] == machine["metadata"]["uid"]
    node.assert_untouched(handle)

    node.delete_record()

    node.until_gone(handle)
    node.assert_ordered(handle, registered=registered)
    node.assert_nothing_left(handle)


@pytest.mark.parametrize("composition", [delayed(seconds) for seconds in DELAYS])
def test_a_record_deleted_by_hand_is_replaced(
    make_node: MakeNode, *, registered: bool, composition: str
) -> None:
    node = make_node(labels={} if registered else NEVER, composition=composition).apply()
    handle = _settled(node, registered=registered)
    old = _deleted_by_hand(node)

    fresh = _replaced(node, old, handle, registered=registered)

    node.delete(propagation="Background")
    node.until_gone(fresh)


def test_two_records_deleted_by_hand_in_a_prompt_pipeline_are_replaced(
    make_node: MakeNode,
) -> None:
    came, never = make_node().apply(), make_node(labels=NEVER).apply()
    handles = came.until_ready(), never.until_enrolling()
    came.until_earned()
    never.until_earned()
    olds = _deleted_by_hand(came), _deleted_by_hand(never)

    fresh_came = _replaced(came, olds[0], handles[0], registered=True)
    fresh_never = _replaced(never, olds[1], handles[1], registered=False)

    came.delete(propagation="Background")
    never.delete(propagation="Background")
    came.until_gone(fresh_came)
    never.until_gone(fresh_never)


def _deleted_by_hand(node: Node) -> str:
    record = node.record()
    assert record is not None
    node.delete_record()
    return str(record["metadata"]["uid"])


def _replaced(node: Node, old: str, handle: str, *, registered: bool) -> str:
    """Wait for a fresh record, id and node; assert that the old ones drained in order."""
    wait_for(
        lambda: (node.record() or {"metadata": {"uid": old}})["metadata"]["uid"] != old,
        "a new record",
    )
    fresh = _settled(node, registered=registered, timeout_s=REPLACED_S)
    assert fresh != handle
    node.assert_ordered(handle, registered=registered)
    node.assert_aggregate_deleted(handle)
    node.assert_created_once(handle)
    node.assert_created_once(fresh)
    return fresh


@pytest.mark.parametrize("way", ["Background", "Foreground", "by-hand"])
def test_a_deletion_that_meets_the_creating_run_leaves_nothing(
    make_node: MakeNode, way: str
) -> None:
    node = make_node(composition=delayed(max(DELAYS))).apply()
    handle = wait_for(node.handle, "acceptance")

    if way == "by-hand":
        node.delete_record()
        wait_for(lambda: node.handle() not in ("", handle), "a new id", timeout_s=REPLACED_S)
        node.delete(propagation="Background")
        fresh = node.handle()
        node.until_gone(fresh)
        node.assert_aggregate_deleted(fresh)
    else:
        node.delete(propagation=way)

    node.until_gone(handle)
    node.assert_aggregate_deleted(handle)
    told = [fact.what for fact in node.facts(handle) if fact.source == "cloud"]
    assert told.count("created") <= 1
    assert told.count("created") == told.count("deleted")


def test_an_xr_applied_again_adopts_what_its_orphaning_left(make_node: MakeNode) -> None:
    node = make_node().apply()
    handle = node.until_ready()
    machine = node.machine(handle)
    record = node.record()
    assert machine is not None
    assert record is not None
    node.until_still()
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
    node.assert_untouched(handle)
    events = [fact.what for fact in node.facts(handle) if fact.source == "event"]
    assert events == ["broker.ProvisionedResourceRequested", "broker.ProvisionedResourceReady"]
    node.delete(propagation="Background")
    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_reconciler_killed_in_the_middle_of_teardown_finishes_it(
    stack: Stack, make_node: MakeNode, *, registered: bool, propagation: str
) -> None:
    labels = {"demo-delete": "hang"} if registered else {"demo-delete": "hang", **NEVER}
    node = make_node(labels=labels).apply()
    handle = _settled(node, registered=registered)
    node.delete(propagation=propagation)
    wait_for(lambda: node.phase() == "Deprovisioning", "Deprovisioning")

    stack.kill_reconciler()
    lifted = {"cloud.demo.plexsphere.com/delete": "lifted"}
    metadata = {"name": handle, "namespace": node.namespace, "annotations": lifted}
    node.cluster.apply({"apiVersion": CLOUD_API, "kind": "Machine", "metadata": metadata})
    stack.start_reconciler()

    node.until_gone(handle)
    node.assert_ordered(handle, registered=registered)
    node.assert_nothing_left(handle)
