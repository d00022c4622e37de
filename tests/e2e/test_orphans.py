"""What nothing looks after any more is found by the sweep, listed, and left where it is."""

from __future__ import annotations

import pytest

from dev.objects import Object
from dev.stack import Stack
from function.contract import names
from tests.e2e import runbook
from tests.e2e.conftest import MakeNode
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.world import API, PROJECT, SUBSTRATE_API, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LEFT = "pr-left-over"


def _listed(stack: Stack) -> str:
    return runbook.run(stack, "broker orphans", {})


def test_a_substrate_that_nobody_knows_is_listed_until_it_is_gone(
    stack: Stack, make_node: MakeNode
) -> None:
    known = make_node().apply().until_ready()
    substrate = stack.plane.cluster.get(SUBSTRATE_API, "XGenericVM", known, PROJECT)
    assert substrate is not None
    left = {
        "apiVersion": SUBSTRATE_API,
        "kind": "XGenericVM",
        "metadata": {
            "name": LEFT,
            "namespace": PROJECT,
            "labels": {names.LABEL_RECORD: "somebody-elses"},
            # Nobody composes anything of it.
            "annotations": {names.PAUSED: "true"},
        },
        "spec": {key: value for key, value in substrate["spec"].items() if key != "crossplane"},
    }
    stack.plane.apply(left)

    told = wait_for(lambda: _found(stack, f"{PROJECT}/{LEFT}"), "the finding")

    assert "substrate-without-record  XGenericVM.blueprints.plexsphere.com" in told
    assert "created for record somebody-elses" in told
    assert known not in told
    found = stack.plane.cluster.get(SUBSTRATE_API, "XGenericVM", LEFT, PROJECT)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    uid = found["metadata"]["uid"]
    event = wait_for(lambda: _event_about(stack, uid, "SubstrateWithoutRecord"), "its Event")
    assert event["type"] == "Warning"
    stack.plane.cluster.delete(SUBSTRATE_API, "XGenericVM", LEFT, PROJECT)
    wait_for(lambda: LEFT not in _listed(stack), "the end of the finding")


def _event_about(stack: Stack, uid: str, reason: str) -> Object | None:
    events = stack.plane.cluster.list("v1", "Event", PROJECT)
    about = (item for item in events if item["involvedObject"].get("uid") == uid)
    return next((item for item in about if item["reason"] == reason), None)


def _found(stack: Stack, what: str) -> str | None:
    told = _listed(stack)
    return told if what in told else None


def test_a_record_whose_finalizer_was_stripped_comes_back_for_the_same_node(
    stack: Stack, make_node: MakeNode
) -> None:
    node = make_node().apply()
    handle = node.until_ready()
    before = node.record()
    assert before is not None
    name = before["metadata"]["name"]
    path = f"/apis/{API}/namespaces/{node.namespace}/provisioningrecords/{name}"
    glass = Caller(stack.plane.kubeconfig).as_user("jane", BREAK_GLASS, MASTERS)

    def stripped() -> bool:
        """Delete it as it is without its finalizer: a run in between puts that on again."""
        bare = glass.patch(path, {"metadata": {"finalizers": None}})
        assert bare.ok, bare.message
        version = bare.body["metadata"]["resourceVersion"]
        answer = glass.delete(path, preconditions={"resourceVersion": version})
        assert answer.ok or answer.status == 409, answer.message
        return answer.ok

    wait_for(stripped, "the record gone without its order")

    def adopted() -> bool:
        after = node.record()
        fresh = after is not None and after["metadata"]["uid"] != before["metadata"]["uid"]
        return fresh and condition_of(after, "Ready").get("status") == "True"

    wait_for(adopted, "the fresh record Ready", explain=node.explain)
    assert node.handle() == handle
    node.assert_untouched(handle)
