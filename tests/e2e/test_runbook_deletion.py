"""`docs/runbooks/deletion.md`: each entry's symptom is made, and its commands are run.

All nodes begin at once and all symptoms are made at once: two of them take two minutes to show.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import asyncpg
import pytest

from dev.stack import Stack
from tests.e2e import runbook
from tests.e2e.deploy.identity import BREAK_GLASS, Caller
from tests.e2e.world import (
    CLOUD_API,
    SUBSTRATE_API,
    Node,
    Object,
    aggregate,
    condition_of,
    wait_for,
)
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

PAGE: Final = "deletion"
STUCK: Final = "tests.plexsphere.com/stuck"
STUCK_TIMEOUT_S: Final = 300.0
"""Two minutes until a child counts as stuck, and a machine ten times slower."""

SCENES: Final = ("kept", "refused", "stuck", "torn", "background")
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
REFUSER: Final = "tests-refuses-deletion"

KEPT: Final = ("kept", "torn", "background")
KEEP: Final = """
CREATE FUNCTION plexsphere.keep_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'this node stays'; END $$;
CREATE TRIGGER keep_{name} BEFORE UPDATE ON plexsphere.nodes FOR EACH ROW
WHEN (new.deregistered_at IS NOT NULL AND new.provisioned_resource_id = '{resource}')
EXECUTE FUNCTION plexsphere.keep_{name}();
"""
LET_GO: Final = "DROP FUNCTION IF EXISTS plexsphere.keep_{name} CASCADE"


def _execute(stack: Stack, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(stack.postgres.dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def glass(stack: Stack) -> Caller:
    return Caller(stack.plane.kubeconfig).as_user("jane", BREAK_GLASS, "system:masters")


@pytest.fixture(scope="module")
def scenes(stack: Stack, glass: Caller) -> Iterator[dict[str, tuple[Node, str]]]:
    """Ready nodes by what is about to go wrong with them, and their handles, all in trouble."""
    nodes = {name: Node(stack, f"rb-{name}").apply() for name in SCENES}
    with ThreadPoolExecutor(len(nodes)) as pool:
        ready = pool.map(lambda node: node.until_ready(), nodes.values())
        handles = dict(zip(nodes, ready, strict=True))
    for name in KEPT:
        resource = handles[name].removeprefix("pr-")
        _execute(stack, KEEP.format(name=name, resource=resource))
    _refuse(glass, handles["refused"])
    for name in ("stuck", "background"):
        assert glass.patch(_machine(handles[name]), _finalizers(stack, handles[name])).ok
    for node in nodes.values():
        node.delete(propagation="Background")
    _take_the_substrate(stack, glass, nodes["background"], handles["background"])
    yield {name: (node, handles[name]) for name, node in nodes.items()}
    for name in KEPT:
        _execute(stack, LET_GO.format(name=name))
    for part in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        glass.delete(f"{ADMISSION}/{part}/{REFUSER}")


def _take_the_substrate(stack: Stack, glass: Caller, node: Node, handle: str) -> None:
    """Delete a substrate in mid-teardown without waiting for what it is made of."""
    _until(node, "Ready", "NodeDeregistrationFailed")
    assert glass.delete(_substrate(handle), propagationPolicy="Background").ok
    _execute(stack, LET_GO.format(name="background"))


def _substrate(handle: str) -> str:
    return f"/apis/{SUBSTRATE_API}/namespaces/{Node.namespace}/xgenericvms/{handle}"


def _machine(handle: str) -> str:
    return f"/apis/{CLOUD_API}/namespaces/{Node.namespace}/machines/{handle}"


def _finalizers(stack: Stack, handle: str) -> Object:
    machine = stack.plane.cluster.get(CLOUD_API, "Machine", handle, Node.namespace)
    assert machine is not None
    return {"metadata": {"finalizers": [*machine["metadata"]["finalizers"], STUCK]}}


def _refuse(glass: Caller, handle: str) -> None:
    """Let a policy refuse the deletion of one substrate to everybody."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": REFUSER},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [SUBSTRATE_API.partition("/")[0]],
                        "apiVersions": ["*"],
                        "resources": ["xgenericvms"],
                        "operations": ["DELETE"],
                    }
                ]
            },
            "validations": [
                {
                    "expression": f"oldObject.metadata.name != '{handle}'",
                    "message": "this one stays",
                    "reason": "Forbidden",
                }
            ],
        },
    }
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": REFUSER, "validationActions": ["Deny"]},
    }
    assert glass.create(f"{ADMISSION}/validatingadmissionpolicies", policy).ok
    assert glass.create(f"{ADMISSION}/validatingadmissionpolicybindings", binding).ok
    # It counts some moments later; asked without effect, so that nothing happens before.
    path = _substrate(handle)
    wait_for(
        lambda: "this one stays" in glass.delete(path, dryRun=["All"]).message,
        "the policy in force",
    )


def _said(node: Node, kind: str) -> tuple[str, str]:
    told = condition_of(node.record(), kind)
    return str(told.get("reason", "")), str(told.get("message", ""))


def _until(node: Node, kind: str, reason: str) -> str:
    """Wait for a condition's reason; return its message."""
    wait_for(
        lambda: _said(node, kind)[0] == reason,
        f"{node.name} {kind} {reason}",
        timeout_s=STUCK_TIMEOUT_S,
        explain=node.explain,
    )
    return _said(node, kind)[1]


Scenes = dict[str, tuple[Node, str]]


@pytest.fixture(scope="module")
def given_up(stack: Stack, scenes: Scenes) -> str:
    """Follow entry 1 to its end; return the handle of the node that stays in the mesh."""
    node, handle = scenes["kept"]
    page = runbook.entry(PAGE, "1.")
    _until(node, "Ready", "NodeDeregistrationFailed")

    told = runbook.follow(stack, node, page, "Diagnose")
    assert told.startswith("Deregistering: The mesh refused")
    answer = runbook.why(stack, node)
    assert answer["reason"] == "NodeDeregistrationFailed"
    assert answer["runbook"] == "deletion.md, entry 1"
    node.assert_untouched(handle)
    runbook.follow(stack, node, page, "Fix", REASON="OPS-17: the mesh is gone")

    node.until_gone(handle)
    return handle


def test_entry_1_a_node_that_cannot_leave_is_given_up(stack: Stack, given_up: str) -> None:
    row = aggregate(stack.postgres.dsn, given_up)
    assert row is not None
    assert (row["status"], row["live_nodes"]) == ("Deleted", 1)


def test_entry_2_a_refused_deletion_ends_when_the_refusal_does(
    stack: Stack, scenes: Scenes, glass: Caller
) -> None:
    node, handle = scenes["refused"]
    page = runbook.entry(PAGE, "2.")
    _until(node, "Ready", "RightsMissing")

    told = runbook.follow(stack, node, page, "Diagnose")
    assert handle in told
    assert "this one stays" in told
    answer = runbook.why(stack, node)
    assert (answer["reason"], answer["runbook"]) == ("RightsMissing", "deletion.md, entry 2")
    assert node.machine(handle) is not None
    for part in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        assert glass.delete(f"{ADMISSION}/{part}/{REFUSER}").ok

    node.until_gone(handle)
    node.assert_nothing_left(handle)


def test_entry_3_a_stuck_child_is_named_and_goes_when_its_finalizer_does(
    stack: Stack, scenes: Scenes
) -> None:
    node, handle = scenes["stuck"]
    page = runbook.entry(PAGE, "3.")
    message = _until(node, "SubstrateDeleted", "ChildStuck")
    made(Kind.DELETE_HANGS)
    kind, child = re.findall(r"(\w+) of \S+ '([^']+)'", message)[0]
    assert (kind, child) == ("Machine", handle)

    told = runbook.follow(stack, node, page, "Diagnose", CHILD=f"{kind}/{child}")
    assert told.startswith(message)
    assert STUCK in told
    assert re.search(r"terminating since \d{4}-\d\d-\d\dT", told)
    answer = runbook.why(stack, node)
    assert (answer["reason"], answer["runbook"]) == ("ChildStuck", "deletion.md, entry 3")
    assert STUCK in answer["explanation"]
    assert node.record() is not None
    runbook.follow(stack, node, page, "Fix", CHILD=f"{kind}/{child}")

    node.until_gone(handle)
    node.assert_nothing_left(handle)


def test_entry_4_a_substrate_that_break_glass_took_leaves_no_child_behind(
    stack: Stack, scenes: Scenes
) -> None:
    node, handle = scenes["background"]
    wait_for(lambda: node.substrate(handle) is None, "the substrate gone")
    message = _until(node, "SubstrateDeleted", "ChildStuck")
    assert STUCK in message
    assert node.phase() == "Deprovisioning"
    row = aggregate(stack.postgres.dsn, handle)
    assert row is not None
    assert row["status"] == "Deprovisioning"

    told = runbook.follow(stack, node, runbook.entry(PAGE, "4."), "Diagnose")
    assert told == f"Deprovisioning: {message}\n"
    stuck = runbook.entry(PAGE, "3.")
    runbook.follow(stack, node, stuck, "Fix", CHILD=f"Machine/{handle}")

    node.until_gone(handle)
    node.assert_aggregate_deleted(handle)


def test_entry_4_a_substrate_that_is_gone_does_not_skip_the_node(
    stack: Stack, scenes: Scenes, glass: Caller
) -> None:
    node, handle = scenes["torn"]
    _until(node, "Ready", "NodeDeregistrationFailed")
    assert glass.delete(_substrate(handle), propagationPolicy="Foreground").ok
    wait_for(lambda: node.substrate(handle) is None, "the substrate gone")

    told = runbook.follow(stack, node, runbook.entry(PAGE, "4."), "Diagnose")
    assert told.startswith("Deregistering: ")
    _execute(stack, LET_GO.format(name="torn"))

    node.until_gone(handle)
    node.assert_aggregate_deleted(handle)


def test_what_is_left_over_is_listed_and_stays(stack: Stack, given_up: str) -> None:
    page = runbook.entry(PAGE, "What is left over")
    (commands,) = runbook.blocks(page.text)

    def listed() -> Any:
        told = runbook.run(stack, commands, {})
        return told if f"of {given_up}" in told else None

    told = wait_for(listed, "the node that was left", timeout_s=60.0)

    assert "node-of-deleted" in told
