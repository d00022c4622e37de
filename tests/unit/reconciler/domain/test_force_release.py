"""The annotation that gives a node up: what counts, and what is said of what does not."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.teardown import force_release
from reconciler.domain.teardown.force_release import REASON_MAX, ForceRelease

FIELD = f"metadata.annotations[{names.ANNOTATION_FORCE_RELEASE}]"


def _metadata(reason: object, *entries: dict[str, Any]) -> dict[str, Any]:
    annotations = {names.ANNOTATION_FORCE_RELEASE: reason}
    return {"annotations": annotations, "managedFields": list(entries)}


def _entry(manager: str, *annotations: str) -> dict[str, Any]:
    owned: dict[str, Any] = {"f:annotations": {f"f:{name}": {} for name in annotations}}
    return {"manager": manager, "fieldsV1": {"f:metadata": owned}}


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": {"a": "b"}}])
def test_without_the_annotation_there_is_no_wish(metadata: dict[str, Any]) -> None:
    assert force_release.read(metadata) is None


@pytest.mark.parametrize("reason", ["x", "OPS-17: the mesh lost its store", "é" * REASON_MAX])
def test_a_reason_makes_a_wish(reason: str) -> None:
    assert force_release.read(_metadata(f"  {reason} ")) == ForceRelease(reason=reason, actor=None)


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("", "must give a reason"),
        (" \t\n ", "must give a reason"),
        ("x" * (REASON_MAX + 1), "at most 512 characters"),
        ("two\nlines", "one line of printable characters"),
        ("nul\0", "one line of printable characters"),
    ],
)
def test_what_is_no_reason_is_told_with_field_and_rule_and_not_its_value(
    reason: str, rule: str
) -> None:
    told = force_release.read(_metadata(reason))

    assert isinstance(told, Explanation)
    assert told.reason == "ForceReleaseInvalid"
    assert told.message.startswith(f"{FIELD}: ")
    assert rule in told.message
    assert "xxx" not in told.message


def test_the_actor_is_who_manages_the_annotation() -> None:
    others = _entry("crossplane", "crossplane.io/composition-resource-name")
    ours = _entry("kubectl-annotate", names.ANNOTATION_FORCE_RELEASE)

    wish = force_release.read(_metadata("gone", {"manager": "x"}, others, ours))

    assert wish == ForceRelease(reason="gone", actor="kubectl-annotate")
