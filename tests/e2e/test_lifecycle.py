"""From Git to Ready and back by every way that somebody can delete something."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final

import pytest

from dev.stack import Stack
from tests.e2e.at_once import Case, Outcome, at_once
from tests.e2e.conftest import DELAYS, PIPELINES, MakeNode, delayed
from tests.e2e.world import CLOUD_API, Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

REPLACED_S: Final = 150.0
"""Two lives in a row on a loaded machine."""

PROPAGATIONS: Final = ("Background", "Foreground")
DELETED: Final = [
    Case(pipeline=pipeline, registered=registered, way=way)
    for pipeline, registered, way in product(PIPELINES, (True, False), PROPAGATIONS)
]
ORPHANED: Final = [
    Case(pipeline=pipeline, registered=registered, way="Orphan")
    for pipeline, registered in product(PIPELINES, (True, False))
]
BY_HAND: Final = [
    Case(pipeline=pipeline, registered=registered, way="by-hand")
    for pipeline, registered in product([PIPELINES[0], *map(delayed, DELAYS)], (True, False))
]
EARLY: Final = [Case(pipeline=delayed(max(DELAYS)), way=way) for way in (*PROPAGATIONS, "by-hand")]
KILLED: Final = [
    Case(registered=registered, way=way) for registered, way in product((True, False), PROPAGATIONS)
]


@pytest.fixture(scope="module")
def deleted(stack: Stack) -> Iterator[Outcome]:
    with at_once(DELETED, partial(_delete, stack)) as outcome:
        yield outcome


def _delete(stack: Stack, case: Case) -> None:
    node = case.node(stack, "deleted")
    handle = case.settled(node)

    node.delete(propagation=case.way)

    node.until_gone(handle)
    node.assert_ordered(handle, registered=case.registered)
    node.assert_nothing_left(handle)
    node.assert_created_once(handle)


@pytest.mark.parametrize("case", DELETED, ids=str)
def test_deleting_the_xr_takes_the_node_out_first(deleted: Outcome, case: Case) -> None:
    deleted(case)


@pytest.fixture(scope="module")
def orphaned(stack: Stack) -> Iterator[Outcome]:
    with at_once(ORPHANED, partial(_orphan, stack)) as outcome:
        yield outcome


def _orphan(stack: Stack, case: Case) -> None:
    node = case.node(stack, "orphaned")
    handle = case.settled(node)
    machine = node.machine(handle)
    node.until_still()

    node.delete(propagation=case.way)

    wait_for(lambda: condition_of(node.record(), "Orphaned").get("status") == "True", "Orphaned")
    wait_for(lambda: node.xr() is None, "the XR gone")
    left = node.machine(handle)
    assert machine is not None
    assert left is not None
    assert left["metadata"]["uid"] == machine["metadata"]["uid"]
    node.assert_untouched(handle)

    node.delete_record()

    node.until_gone(handle)
    node.assert_ordered(handle, registered=case.registered)
    node.assert_nothing_left(handle)


@pytest.mark.parametrize("case", ORPHANED, ids=str)
def test_an_orphaned_record_keeps_everything_until_it_is_deleted(
    orphaned: Outcome, case: Case
) -> None:
    orphaned(case)


@pytest.fixture(scope="module")
def replaced(stack: Stack) -> Iterator[Outcome]:
    with at_once(BY_HAND, partial(_delete_record, stack)) as outcome:
        yield outcome


def _delete_record(stack: Stack, case: Case) -> None:
    node = case.node(stack, "replaced")
    handle = case.settled(node)
    # A second life of a pipeline that is not slow would open the XR's breaker.
    if case.pipeline != delayed(max(DELAYS)):
        node.until_earned()
    record = node.record()
    assert record is not None
    old = record["metadata"]["uid"]
    node.delete_record()

    wait_for(
        lambda: (node.record() or {"metadata": {"uid": old}})["metadata"]["uid"] != old,
        "a new record",
        explain=node.explain,
    )
    fresh = case.settled(node, timeout_s=REPLACED_S)

    assert fresh != handle
    node.assert_ordered(handle, registered=case.registered)
    node.assert_aggregate_deleted(handle)
    node.assert_created_once(handle)
    node.assert_created_once(fresh)
    node.delete(propagation="Background")
    node.until_gone(fresh)


@pytest.mark.parametrize("case", BY_HAND, ids=str)
def test_a_record_deleted_by_hand_is_replaced(replaced: Outcome, case: Case) -> None:
    replaced(case)


@pytest.fixture(scope="module")
def early(stack: Stack) -> Iterator[Outcome]:
    with at_once(EARLY, partial(_delete_early, stack)) as outcome:
        yield outcome


def _delete_early(stack: Stack, case: Case) -> None:
    node = case.node(stack, "early")
    handle = wait_for(node.handle, "acceptance", explain=node.explain)

    if case.way == "by-hand":
        node.delete_record()
        wait_for(
            lambda: node.handle() not in ("", handle),
            "a new id",
            timeout_s=REPLACED_S,
            explain=node.explain,
        )
        node.delete(propagation="Background")
        fresh = node.handle()
        node.until_gone(fresh)
        node.assert_aggregate_deleted(fresh)
    else:
        node.delete(propagation=case.way)

    node.until_gone(handle)
    node.assert_aggregate_deleted(handle)
    told = [fact.what for fact in node.facts(handle) if fact.source == "cloud"]
    assert told.count("created") <= 1
    assert told.count("created") == told.count("deleted")


@pytest.mark.parametrize("case", EARLY, ids=str)
def test_a_deletion_that_meets_the_creating_run_leaves_nothing(early: Outcome, case: Case) -> None:
    early(case)


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
    wait_for(
        lambda: condition_of(node.record(), "Orphaned").get("status") == "False",
        "owned",
        explain=node.explain,
    )
    node.assert_untouched(handle)
    events = [fact.what for fact in node.facts(handle) if fact.source == "event"]
    assert events == ["broker.ProvisionedResourceRequested", "broker.ProvisionedResourceReady"]
    node.delete(propagation="Background")
    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)


Hanging = dict[Case, tuple[Node, str]]


@pytest.fixture(scope="module")
def hanging(stack: Stack) -> Hanging:
    """All cases in the middle of their teardown when the reconciler is killed, and begun again."""
    nodes = {case: case.node(stack, "killed", labels={"demo-delete": "hang"}) for case in KILLED}
    found = {case: (node, case.settled(node)) for case, node in nodes.items()}
    for case, (node, _) in found.items():
        node.delete(propagation=case.way)
    for node, _ in found.values():
        wait_for(partial(_is_deprovisioning, node), "Deprovisioning")

    stack.kill_reconciler()
    for node, handle in found.values():
        lifted = {"cloud.demo.plexsphere.com/delete": "lifted"}
        metadata = {"name": handle, "namespace": node.namespace, "annotations": lifted}
        node.cluster.apply({"apiVersion": CLOUD_API, "kind": "Machine", "metadata": metadata})
    stack.start_reconciler()
    return found


def _is_deprovisioning(node: Node) -> bool:
    return node.phase() == "Deprovisioning"


@pytest.mark.parametrize("case", KILLED, ids=str)
def test_a_reconciler_killed_in_the_middle_of_teardown_finishes_it(
    hanging: Hanging, case: Case
) -> None:
    node, handle = hanging[case]

    node.until_gone(handle)
    node.assert_ordered(handle, registered=case.registered)
    node.assert_nothing_left(handle)
