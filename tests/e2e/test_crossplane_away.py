"""Crossplane is gone for a while, and another process of it comes: no run of any XR meanwhile."""

from __future__ import annotations

import pytest

from dev.process import answers
from dev.stack import Stack
from tests.e2e.conftest import MakeNode
from tests.e2e.world import condition_of, wait_for
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_fault_22_a_node_comes_and_leaves_in_order_though_crossplane_is_away_meanwhile(
    stack: Stack, make_node: MakeNode
) -> None:
    if not stack.plane.is_ours or stack.crossplane is None:
        pytest.skip("the Crossplane of BROKER_KUBECONFIG is not ours to end")
    node = make_node().apply()
    handle = wait_for(node.handle, "its name", explain=node.explain)
    wait_for(lambda: node.machine(handle) is not None, "its machine", explain=node.explain)

    with stack.crossplane.away():
        assert not answers(stack.crossplane.metrics_url)
        made(Kind.CROSSPLANE_AWAY)
        wait_for(
            lambda: "registered" in {fact.what for fact in node.facts(handle)},
            "its node in the mesh",
            explain=node.explain,
        )
        assert condition_of(node.xr(), "Ready").get("status") != "True"
    assert node.until_ready() == handle

    with stack.crossplane.away():
        node.delete(propagation="Background")
        xr = node.xr()
        assert xr is not None
        assert "deletionTimestamp" in xr["metadata"]
        assert not answers(stack.crossplane.metrics_url)
        node.assert_untouched(handle)
    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)
    node.assert_nothing_left(handle)
    node.assert_created_once(handle)
