"""What README.md and `make up` print becomes a node as it stands."""

from __future__ import annotations

import re

import pytest
import yaml

from dev import binaries, next_steps
from dev.stack import ROOT, Stack
from tests.e2e import runbook
from tests.e2e.world import Node

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_readmes_resource_becomes_a_node_as_printed(stack: Stack) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (printed,) = _BLOCK.findall(readme)
    manifest = yaml.safe_load(printed)
    metadata = manifest["metadata"]
    node = Node(stack, metadata["name"], namespace=metadata["namespace"])

    stack.plane.apply(manifest)

    handle = node.until_ready()
    node.delete(propagation="Background")
    node.until_gone(handle)


def test_what_make_up_prints_leads_to_a_node(stack: Stack) -> None:
    kubectl = binaries.ensure(["kubectl"], report=print)["kubectl"]
    printed = next_steps.after_up(stack.plane.kubeconfig, kubectl=kubectl)
    node = Node(stack, "web-1", namespace=next_steps.NAMESPACE)

    told = runbook.run(stack, f"cd {ROOT}\n{printed}", {})

    assert f"ProvisionedResource {next_steps.NAMESPACE}/web-1: " in told
    handle = node.until_ready()
    node.delete(propagation="Background")
    node.until_gone(handle)
