"""An XR of which Crossplane passes hardly a change on, for its breaker is open."""

from __future__ import annotations

from typing import Final

import pytest

from tests.e2e.conftest import MakeNode
from tests.e2e.world import API, OPEN_S, Node, condition_of, is_cut_off, wait_for
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CHANGES: Final = 150
"""Of one object; fifty at once are what a breaker lets pass, and one more in two seconds."""


def test_fault_22_a_node_comes_and_leaves_in_order_though_its_breaker_is_open(
    make_node: MakeNode,
) -> None:
    node = make_node().apply()
    wait_for(node.record, "its record")
    _change_it_often(node)
    wait_for(lambda: is_cut_off(node.xr()), "an open breaker", explain=node.explain)
    made(Kind.BREAKER)
    assert condition_of(node.xr(), "Ready").get("status") != "True"

    handle = node.until_ready(timeout_s=OPEN_S)

    assert is_cut_off(node.xr()), node.explain()
    node.delete(propagation="Background")
    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)
    node.assert_nothing_left(handle)


def _change_it_often(node: Node) -> None:
    record = node.record()
    assert record is not None
    for number in range(CHANGES):
        metadata = {
            "name": record["metadata"]["name"],
            "namespace": node.namespace,
            "annotations": {"tests.plexsphere.com/number": str(number)},
        }
        node.cluster.apply(
            {"apiVersion": API, "kind": "ProvisioningRecord", "metadata": metadata},
        )
