"""What README.md prints as a manifest becomes a node as it stands."""

from __future__ import annotations

import re

import pytest
import yaml

from dev.stack import ROOT, Stack
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
