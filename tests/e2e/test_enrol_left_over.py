"""A pool that was orphaned and applied again smaller: what it leaves out is drained."""

from __future__ import annotations

import pytest

from dev.stack import Stack
from reconciler.app.converge.pool_shrink import SETTLED_S
from tests.e2e import enrol_world
from tests.e2e.enrol_pool import Pool
from tests.e2e.enrol_world import ENROLLED, ENTRY, LONG, NETWORK
from tests.e2e.world import TIMEOUT_S, condition_of, wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(500),
    pytest.mark.skipif(not LONG, reason="four minutes: an XR at rest for two, twice (test-long)"),
]

XRD_API = "apiextensions.crossplane.io/v2"


def test_the_missing_member_is_drained_and_the_other_stays(stack: Stack) -> None:
    cluster, definition = stack.plane.cluster, enrol_world.definition()
    stack.plane.apply(*enrol_world.rights(), definition)
    name = definition["metadata"]["name"]

    def established() -> bool:
        found = cluster.get(XRD_API, "CompositeResourceDefinition", name)
        return condition_of(found, "Established").get("status") == "True"

    wait_for(established, "the XRD established")
    stack.plane.apply(enrol_world.composition(ENROLLED, [ENTRY]))
    pool = Pool(stack, "left-over").apply(2)
    kept, left = pool.until_ready("node-0", "node-1")
    machine = pool.machine(kept)
    assert machine is not None
    # An XR at rest: a run in flight would apply records with their dead owner (0002).
    pool.until_earned()

    pool.delete("Orphan")
    wait_for(lambda: pool.xr() is None, "the XR gone")
    wait_for(
        lambda: condition_of(pool.record("node-1"), "Orphaned").get("status") == "True",
        "the record orphaned",
    )
    pool.apply(1)

    wait_for(
        lambda: pool.record("node-1") is None,
        "the record that is left over gone",
        timeout_s=SETTLED_S + TIMEOUT_S,
        explain=pool.explain,
    )
    pool.assert_drained(left)
    pool.until_ready("node-0")
    pool.assert_untouched(kept, machine)
    pool.delete("Background")
    # What the first XR composed under generated names is orphaned, and nobody's.
    wait_for(lambda: pool.xr() is None and pool.record("node-0") is None, "the pool gone")
    assert pool.machine(kept) is None
    wait_for(lambda: pool.composed(NETWORK) is None, "its network gone")
