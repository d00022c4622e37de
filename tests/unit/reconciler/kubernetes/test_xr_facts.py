"""What an XR says of itself, and since when it is at rest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.adapters.kubernetes.objects import xr_facts

EARLY, LATE = "2026-11-21T12:00:00Z", "2026-11-21T12:05:00Z"


def _xr(**conditions: dict[str, Any]) -> dict[str, Any]:
    listed = [{"type": name, "status": "True", **told} for name, told in conditions.items()]
    metadata = {"uid": "one", "generation": 2}
    return {"metadata": metadata, "status": {"conditions": listed}}


def test_it_is_at_rest_since_both_conditions_hold() -> None:
    found = _xr(
        Synced={"lastTransitionTime": LATE, "observedGeneration": 2},
        Ready={"lastTransitionTime": EARLY},
    )

    assert xr_facts.facts(found, "").settled_at == datetime(2026, 11, 21, 12, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "False"},
        {"status": "Unknown"},
        {"observedGeneration": 1},
        {"lastTransitionTime": "soon"},
        {"lastTransitionTime": "2026-11-21T12:00:00"},
        {"lastTransitionTime": None},
    ],
)
@pytest.mark.parametrize("name", ["Synced", "Ready"])
def test_otherwise_it_is_not(name: str, changed: dict[str, Any]) -> None:
    conditions: dict[str, dict[str, Any]] = {
        each: {"lastTransitionTime": EARLY} for each in ("Synced", "Ready")
    }
    conditions[name] |= changed

    assert xr_facts.facts(_xr(**conditions), "one").settled_at is None


@pytest.mark.parametrize("name", ["Synced", "Ready"])
def test_one_that_does_not_say_is_not(name: str) -> None:
    assert xr_facts.facts(_xr(**{name: {"lastTransitionTime": EARLY}}), "").settled_at is None


def test_another_uid_is_not_it() -> None:
    assert not xr_facts.facts(_xr(), "two").exists
