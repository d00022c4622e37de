"""The transition rules of the ProvisionedResource's definition, on a live cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dev.kube import RefusedError, refusals
from dev.stack import Stack
from tests.e2e.conftest import MakeNode
from tests.e2e.world import API, Node

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MISSING = "definitions-missing"
"""A blueprint that nobody publishes: the XR is there, and nothing is made for it."""


@pytest.fixture
def declared(make_node: MakeNode) -> Iterator[Node]:
    node = make_node(blueprint=MISSING)
    node.apply()
    yield node
    node.delete(propagation="Background")
    node.until_gone("pr-none")


def _patched(stack: Stack, node: Node, spec: dict[str, Any]) -> dict[str, Any]:
    """Merge into an XR's spec and return the spec that came out."""
    with refusals(f"patch {node.name}"):
        found = stack.plane.cluster.resource(API, "ProvisionedResource").patch(
            name=node.name,
            namespace=node.namespace,
            body={"spec": spec},
            content_type="application/merge-patch+json",
        )
    result: dict[str, Any] = found.to_dict()["spec"]
    return result


@pytest.mark.parametrize("field", ["blueprintRef", "cloudCredentialRef"])
def test_reference_is_immutable(stack: Stack, declared: Node, field: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        _patched(stack, declared, {field: {"name": "another"}})

    assert refusal.value.status == 422
    assert f"spec.{field} is immutable" in refusal.value.reason


@pytest.mark.parametrize("field", ["blueprintRef", "cloudCredentialRef"])
def test_reference_is_not_taken_out(stack: Stack, declared: Node, field: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        _patched(stack, declared, {field: None})

    assert refusal.value.status == 422
    assert f"spec.{field}" in refusal.value.reason


@pytest.mark.parametrize("value", [2, 0, None])
def test_retry_does_not_decrease(stack: Stack, declared: Node, value: int | None) -> None:
    assert _patched(stack, declared, {"retry": 3})["retry"] == 3

    with pytest.raises(RefusedError) as refusal:
        _patched(stack, declared, {"retry": value})

    assert refusal.value.status == 422
    assert "spec.retry must not decrease" in refusal.value.reason


def test_retry_stays_or_grows(stack: Stack, declared: Node) -> None:
    grown = [_patched(stack, declared, {"retry": retry})["retry"] for retry in (0, 0, 1, 5)]

    assert grown == [0, 0, 1, 5]


def test_other_fields_change(stack: Stack, declared: Node) -> None:
    change = {"labels": {"team": "checkout"}, "parameters": {"region": "fsn1"}}

    assert change.items() <= _patched(stack, declared, change).items()
