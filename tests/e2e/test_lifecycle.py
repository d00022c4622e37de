"""From Git to Ready and back behind pipelines that take their time, by every way to delete.

What a prompt pipeline does under each way is told by the deletion matrix. All lives of this file
run beside one another, because they mostly wait; a test is what one of them came to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import pytest

from dev.stack import Stack
from tests.e2e.at_once import Case, Outcome, at_once
from tests.e2e.conftest import DELAYS, TAKEN, delayed
from tests.e2e.world import condition_of, wait_for
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LIFE_S: Final = 150.0
"""Two lives in a row, beside a dozen others."""

PROPAGATIONS: Final = ("Background", "Foreground")
DELETED: Final = [
    Case(pipeline=delayed(delay_s), registered=registered, way=way)
    for delay_s, registered, way in product(TAKEN, (True, False), PROPAGATIONS)
]
ORPHANED: Final = [
    Case(pipeline=delayed(delay_s), registered=registered, way="Orphan")
    for delay_s, registered in product(TAKEN, (True, False))
]
BY_HAND: Final = [
    Case(pipeline=delayed(delay_s), registered=registered, way="by-hand")
    for delay_s, registered in product(DELAYS, (True, False))
]
EARLY: Final = [Case(pipeline=delayed(max(DELAYS)), way=way) for way in (*PROPAGATIONS, "by-hand")]
ADOPTED: Final = Case(way="Orphan")


@dataclass(frozen=True)
class Life:
    """One case of one scenario."""

    deed: Callable[[Stack, Case], None]
    case: Case


Lives = Outcome[Life]


def _delete(stack: Stack, case: Case) -> None:
    node = case.node(stack, "deleted")
    handle = case.settled(node, timeout_s=LIFE_S)

    node.delete(propagation=case.way)

    node.until_gone(handle)
    node.assert_ordered(handle, registered=case.registered)
    node.assert_nothing_left(handle)
    node.assert_created_once(handle)


@pytest.mark.parametrize("case", DELETED, ids=str)
def test_deleting_the_xr_takes_the_node_out_first(lives: Lives, case: Case) -> None:
    lives(Life(_delete, case))


def _orphan(stack: Stack, case: Case) -> None:
    node = case.node(stack, "orphaned")
    handle = case.settled(node, timeout_s=LIFE_S)
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
def test_an_orphaned_record_keeps_everything_until_it_is_deleted(lives: Lives, case: Case) -> None:
    lives(Life(_orphan, case))


def _delete_record(stack: Stack, case: Case) -> None:
    node = case.node(stack, "replaced")
    handle = case.settled(node, timeout_s=LIFE_S)
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
    fresh = case.settled(node, timeout_s=LIFE_S)

    assert fresh != handle
    node.assert_ordered(handle, registered=case.registered)
    node.assert_aggregate_deleted(handle)
    node.assert_created_once(handle)
    node.assert_created_once(fresh)
    node.delete(propagation="Background")
    node.until_gone(fresh)


@pytest.mark.parametrize("case", BY_HAND, ids=str)
def test_a_record_deleted_by_hand_is_replaced(lives: Lives, case: Case) -> None:
    lives(Life(_delete_record, case))


def _delete_early(stack: Stack, case: Case) -> None:
    node = case.node(stack, "early")
    handle = wait_for(node.handle, "acceptance", explain=node.explain)
    made(Kind.SLOW_PIPELINE)

    if case.way == "by-hand":
        node.delete_record()
        wait_for(
            lambda: node.handle() not in ("", handle),
            "a new id",
            timeout_s=LIFE_S,
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
def test_a_deletion_that_meets_the_creating_run_leaves_nothing(lives: Lives, case: Case) -> None:
    lives(Life(_delete_early, case))


def _adopt(stack: Stack, case: Case) -> None:
    node = case.node(stack, "adopted")
    handle = case.settled(node, timeout_s=LIFE_S)
    machine = node.machine(handle)
    record = node.record()
    assert machine is not None
    assert record is not None
    node.until_still()
    node.delete(propagation=case.way)
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


def test_an_xr_applied_again_adopts_what_its_orphaning_left(lives: Lives) -> None:
    lives(Life(_adopt, ADOPTED))


SCENARIOS: Final = {
    _delete: DELETED,
    _orphan: ORPHANED,
    _delete_record: BY_HAND,
    _delete_early: EARLY,
    _adopt: [ADOPTED],
}


@pytest.fixture(scope="module")
def lives(stack: Stack) -> Iterator[Lives]:
    """Every life of every scenario."""
    chosen = [Life(deed, case) for deed, cases in SCENARIOS.items() for case in cases]
    with at_once(chosen, lambda life: life.deed(stack, life.case)) as outcome:
        yield outcome
