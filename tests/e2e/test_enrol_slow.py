"""Enrolled nodes behind pipelines that take their time: every run is one that is in flight.

All lives of this file run beside one another, each in a thread, because they mostly wait;
a test is what one of them came to. `make test-long` has pools of several nodes too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from kubernetes.client.exceptions import ApiException

from dev.kube import RefusedError
from dev.stack import Stack
from tests.e2e import enrol_world
from tests.e2e.conftest import DELAYS
from tests.e2e.enrol_pool import Pool, assert_same, held
from tests.e2e.enrol_world import ENTRY, LONG
from tests.e2e.world import API, CLOUD_API, Object, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

SLOW_S = 240.0
"""A life behind the slowest pipeline, with all the others beside it."""

CAME = {"team": "checkout"}
NEVER = {**CAME, "demo-boot": "never"}
ALL_AT_ONCE = 64
"""More than there are lives."""


@dataclass(frozen=True)
class Case:
    """A pool and how it ends: `shrink` takes its last node out, the others delete the XR."""

    delay_s: float
    registered: bool
    end: str
    count: int = 1

    @property
    def name(self) -> str:
        came = "came" if self.registered else "never"
        return f"slow-{int(self.delay_s * 10)}-{came}-{self.end}-{self.count}".lower()

    @property
    def labels(self) -> dict[str, str]:
        return CAME if self.registered else NEVER

    def apply(self, stack: Stack, count: int) -> Pool:
        composition = enrol_world.slowed(self.delay_s)
        return Pool(stack, self.name).apply(count, composition=composition, labels=self.labels)


ENDS = ("shrink", "Background", "Foreground")
SINGLE = [Case(*each) for each in itertools.product(DELAYS, (True, False), ENDS)]
PAIRS = [Case(*each, 2) for each in itertools.product(DELAYS, (True, False), ("shrink",))]
CASES = [*SINGLE, *PAIRS] if LONG else SINGLE


def _live(pool: Pool, case: Case) -> None:
    """Lead a pool's life to its end, with the assertions at each station."""
    resources = [f"node-{number}" for number in range(case.count)]
    handles = pool.until_settled(*resources, registered=case.registered, timeout_s=SLOW_S)
    network = pool.network()
    _assert_not_to_be_deleted_directly(pool, handles, network)
    if case.count > 1:
        pool.until_earned()

    if case.end == "shrink":
        _shrink(pool, case, handles, network)
    pool.delete("Background" if case.end == "shrink" else case.end)

    pool.until_gone()
    for handle in handles:
        pool.assert_drained(handle, registered=case.registered)
    # Without nodes nobody holds it, and it goes as anything else.
    if case.end != "shrink":
        _assert_last(pool, network, handles)


def _shrink(pool: Pool, case: Case, handles: Sequence[str], network: Object) -> None:
    """Take the last node out of a pool, and see that the others are as before."""
    *kept, dropped = handles
    machines = [_machine(pool, handle) for handle in kept]
    resource = f"node-{len(kept)}"

    case.apply(pool.stack, len(kept))

    wait_for(
        lambda: pool.record(resource) is None and pool.machine(dropped) is None,
        f"{resource} of {pool.name} drained",
        timeout_s=SLOW_S,
        explain=pool.explain,
    )
    pool.assert_drained(dropped, registered=case.registered)
    assert_same(pool.network(), network)
    for handle, machine in zip(kept, machines, strict=True):
        pool.assert_untouched(handle, machine)
    if kept:
        assert held(pool.network())
    else:
        wait_for(lambda: not held(pool.network()), "what no node needs let go", timeout_s=SLOW_S)


def _assert_not_to_be_deleted_directly(pool: Pool, handles: Sequence[str], network: Object) -> None:
    machines = [_machine(pool, handle) for handle in handles]
    targets = [(CLOUD_API, "Machine", handle) for handle in handles]
    targets.append(("v1", "ConfigMap", network["metadata"]["name"]))
    for (api, kind, name), propagation in itertools.product(
        targets, ("Background", "Foreground", "Orphan")
    ):
        with pytest.raises(RefusedError) as refused:
            pool.cluster.delete(api, kind, name, pool.namespace, propagation=propagation)
        assert refused.value.status == 403
    with pytest.raises(ApiException, match="Forbidden"):
        pool.cluster.resource(CLOUD_API, "Machine").delete(
            namespace=pool.namespace, label_selector=f"crossplane.io/composite={pool.name}"
        )
    for handle, machine in zip(handles, machines, strict=True):
        pool.assert_untouched(handle, machine)
    assert_same(pool.network(), network)


def _assert_last(pool: Pool, network: Object, handles: Sequence[str]) -> None:
    """Assert that what nodes held went after their machines, where the log tells."""
    gone = pool.deletion("configmaps", network["metadata"]["name"])
    assert gone is not None or pool.stack.plane.audit_log is None
    assert gone is None or all(pool.moment("cloud", "deleted", each) < gone for each in handles)


def _machine(pool: Pool, handle: str) -> Object:
    found = pool.machine(handle)
    assert found is not None
    return found


@dataclass(frozen=True)
class Meeting:
    """An end of a pool's second node that meets the run which creates it."""

    delay_s: float
    way: str

    @property
    def name(self) -> str:
        return f"met-{int(self.delay_s * 10)}-{self.way}".lower()


WAYS = ("shrink", "Background", "Foreground", "record")
MEETINGS = (
    [Meeting(*each) for each in itertools.product(DELAYS, WAYS)]
    if LONG
    else [Meeting(max(DELAYS), way) for way in ("shrink", "Background")]
)


def _meet(pool: Pool, meeting: Meeting) -> None:
    """End a node as soon as it is accepted, and see that nothing of it is left."""
    composition = enrol_world.slowed(meeting.delay_s)
    handle = str(
        wait_for(
            lambda: pool.handle("node-1"), "acceptance", timeout_s=SLOW_S, explain=pool.explain
        )
    )

    _end(pool, meeting, composition)

    if meeting.way in ("Background", "Foreground"):
        pool.until_gone()
        pool.assert_ended(handle)
        return
    wait_for(
        lambda: pool.handle("node-1") != handle and pool.machine(handle) is None,
        f"{handle} gone",
        timeout_s=SLOW_S,
        explain=pool.explain,
    )
    pool.assert_ended(handle)
    left = ("node-0",) if meeting.way == "shrink" else ("node-0", "node-1")
    pool.until_ready(*left, timeout_s=SLOW_S)
    pool.delete("Background")
    pool.until_gone()


def _end(pool: Pool, meeting: Meeting, composition: str) -> None:
    match meeting.way:
        case "shrink":
            pool.apply(1, composition=composition)
        case "record":
            record = pool.record("node-1")
            assert record is not None
            name = record["metadata"]["name"]
            pool.cluster.delete(API, "ProvisioningRecord", name, pool.namespace)
        case propagation:
            pool.delete(propagation)


Lives = dict[Case | Meeting, "Future[None]"]


@pytest.fixture(scope="module")
def lives(stack: Stack) -> Iterator[Lives]:
    """Install the kind with a Composition for each delay, and begin every life."""
    enrol_world.install(
        stack,
        *(
            enrol_world.composition(enrol_world.slowed(delay_s), [ENTRY], delay_s=delay_s)
            for delay_s in DELAYS
        ),
    )
    pools = {case: case.apply(stack, case.count) for case in CASES}
    # The client's discovery is not for threads: here it meets every kind that they will use.
    for pool in pools.values():
        pool.below()
    with ThreadPoolExecutor(max_workers=ALL_AT_ONCE) as threads:
        led: Lives = {case: threads.submit(_live, pool, case) for case, pool in pools.items()}
        for meeting in MEETINGS:
            composition = enrol_world.slowed(meeting.delay_s)
            pool = Pool(stack, meeting.name).apply(2, composition=composition)
            led[meeting] = threads.submit(_meet, pool, meeting)
        yield led


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_enrolled_node_is_held_and_leaves_the_mesh_before_anything_goes(
    lives: Lives, case: Case
) -> None:
    lives[case].result()


@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda meeting: meeting.name)
def test_an_end_that_meets_the_creating_run_leaves_nothing(lives: Lives, meeting: Meeting) -> None:
    lives[meeting].result()
