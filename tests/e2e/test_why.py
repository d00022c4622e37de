"""`broker why` on a real control plane: as an administrator, as a tenant, and of what is not there.

What each runbook entry's symptom is answered with is in the tests of the runbooks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from dev.stack import Stack
from tests.e2e import runbook
from tests.e2e.conftest import MakeNode
from tests.e2e.world import Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TIMEOUT_S: Final = 60.0
TENANT: Final = """
kubectl -n "$NAMESPACE" create serviceaccount why
kubectl -n "$NAMESPACE" create rolebinding why --clusterrole=view --serviceaccount="$NAMESPACE":why
kubectl config view --raw --flatten > "$COPY"
export KUBECONFIG="$COPY"
kubectl config set-credentials why --token="$(kubectl -n "$NAMESPACE" create token why)"
CLUSTER="$(kubectl config view -o jsonpath='{.clusters[0].name}')"
kubectl config set-context why --cluster="$CLUSTER" --user=why --namespace="$NAMESPACE"
"""
REFUSED: Final = {"demo-create": "hang"}


def _asked(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `broker why`; every exit status is an answer."""
    return subprocess.run(
        [Path(sys.executable).parent / "broker", "why", *arguments],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def hanging(stack: Stack) -> Node:
    """A node whose machine its cloud does not make."""
    node = Node(stack, "why-hangs", labels=REFUSED).apply()
    wait_for(lambda: node.phase() == "Provisioning", "Provisioning", explain=node.explain)
    return node


@pytest.fixture
def tenant(stack: Stack, hanging: Node, tmp_path: Path) -> Path:
    """Return the kubeconfig of an account that may `view` the Project's namespace."""
    copy = tmp_path / "kubeconfig"
    runbook.run(stack, TENANT, {"NAMESPACE": hanging.namespace, "COPY": str(copy)})
    return copy


def test_one_screen_says_culprit_actor_command_and_entry(stack: Stack, hanging: Node) -> None:
    told = _asked(stack.plane.kubeconfig, hanging.name, "-n", hanging.namespace)

    assert told.returncode == 0, told.stderr
    title, _, *lines = told.stdout.splitlines()
    screen = {line[:12].strip(): line[12:] for line in lines}
    assert (
        title == f"ProvisionedResource {hanging.namespace}/{hanging.name}: not Ready (Provisioning)"
    )
    assert screen["Says"] == f"Machine/{hanging.handle()}"
    assert screen["Acts"] == "the provider, or its cloud"
    assert screen["Runbook"] == "docs/runbooks/provisioning.md, entry 2"
    shown = runbook.run(stack, screen["Next"], {})
    assert hanging.handle() in shown


def test_a_tenant_is_told_what_it_may_not_read(hanging: Node, tenant: Path) -> None:
    told = _asked(tenant, hanging.name, "--context", "why")

    assert told.returncode == 0, told.stderr
    assert "ProvisioningRecord/" in told.stdout
    unread = next(line for line in told.stdout.splitlines() if line.startswith("Not read"))
    assert f"XGenericVM/{hanging.handle()}" in unread


def test_a_node_is_explained_from_ready_to_gone(stack: Stack, make_node: MakeNode) -> None:
    node = make_node().apply()
    handle = node.until_ready()
    wait_for(lambda: condition_of(node.xr(), "Ready").get("status") == "True", "the XR Ready too")

    assert runbook.why(stack, node)["ready"]
    node.delete(propagation="Background")
    node.until_gone(handle)

    told = _asked(stack.plane.kubeconfig, node.name, "-n", node.namespace)
    assert told.returncode == 1
    assert f"there is no ProvisionedResource/{node.name}" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["nothings/web-1"], "serves no namespaced resource type 'nothings'"),
        (["web-1", "--context", "elsewhere"], "--context: must name one entry of contexts"),
        (["pvr/../secrets"], "NAME is NAME or TYPE/NAME"),
    ],
    ids=["type", "context", "path"],
)
def test_a_wrong_argument_is_one_line(stack: Stack, arguments: list[str], rule: str) -> None:
    told = _asked(stack.plane.kubeconfig, *arguments)

    assert (told.returncode, told.stdout) == (1, "")
    assert rule in told.stderr
    assert told.stderr.count("\n") == 1
