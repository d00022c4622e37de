"""Every rule of the aggregate's constructor, and what it lets pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from function.contract.strategy import Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.domain.aggregate.invariants import GENERATION_MAX
from reconciler.domain.aggregate.protected_object import ProtectedObject
from tests.unit.reconciler import samples

ZERO = UUID(int=0)
NAIVE = datetime(2026, 11, 21, 12, 0)  # noqa: DTZ001 - what is to be refused
SUBSTRATE = ProtectedObject(reference=samples.SUBSTRATE)
SIBLING = ProtectedObject(reference=samples.NETWORK, sibling=True)
GOING: dict[str, Any] = {"phase": Phase.DEREGISTERING, "deletion_requested_at": samples.NOW}

REFUSED: list[tuple[dict[str, Any], str]] = [
    *(
        ({name: ZERO}, f"{name} must not be the zero id")
        for name in (
            *("id", "resource_id", "project_id", "blueprint_version_id", "cloud_credential_id"),
            "management_cluster_id",
        )
    ),
    ({"xr_name": "pr-another"}, "xr_name must be derived from the id"),
    ({"xr_name": ""}, "xr_name must be derived from the id"),
    ({"created_at": NAIVE}, "created_at must carry a time zone"),
    ({"updated_at": NAIVE}, "updated_at must carry a time zone"),
    ({**GOING, "deletion_requested_at": NAIVE}, "deletion_requested_at must carry a time zone"),
    ({**GOING, "force_released_at": NAIVE}, "force_released_at must carry a time zone"),
    ({"enrolling_since": NAIVE}, "enrolling_since must carry a time zone"),
    ({"recreating_since": NAIVE}, "recreating_since must carry a time zone"),
    ({"updated_at": samples.NOW - timedelta(seconds=1)}, "updated_at must not lie before"),
    ({"generation": -1}, "generation must lie between 0 and"),
    ({"generation": GENERATION_MAX + 1}, "generation must lie between 0 and"),
    ({"recreations": -1}, "recreations must not be negative"),
    ({"version": -1}, "version must not be negative"),
    *(
        ({"phase": each}, "deletion_requested_at must be set in a teardown phase")
        for each in (Phase.DEREGISTERING, Phase.DEPROVISIONING, Phase.DELETED)
    ),
    ({"force_released_at": samples.NOW}, "force_released_at must follow a deletion request"),
    (
        {"key": replace(samples.resource().key, project_id=ids.ProjectID(UUID(int=1)))},
        "key.project_id must equal project_id",
    ),
    ({"protected": ()}, "protected must begin with the substrate"),
    ({"protected": (SIBLING, SUBSTRATE)}, "protected must begin with the substrate"),
    ({"protected": (SUBSTRATE, SUBSTRATE)}, "protected must hold siblings behind the substrate"),
]


@pytest.mark.parametrize(("changes", "rule"), REFUSED, ids=[rule for _, rule in REFUSED])
def test_what_breaks_a_rule_is_not_built(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInputError, match=f"cannot build provisioned resource: {rule}"):
        samples.resource(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"generation": GENERATION_MAX},
        {"created_at": samples.NOW.astimezone(timezone(timedelta(hours=5)))},
        {"protected": (SUBSTRATE, SIBLING, SIBLING)},
        {"enrolling_since": samples.NOW, "recreating_since": samples.NOW, "recreations": 3},
        # A deletion is requested before the phase says so: the machine derives it.
        {"deletion_requested_at": samples.NOW},
        {**GOING, "force_released_at": samples.NOW},
    ],
)
def test_what_keeps_them_is(changes: dict[str, Any]) -> None:
    resource = samples.resource(**changes)

    assert all(getattr(resource, name) == value for name, value in changes.items())


@pytest.mark.parametrize("phase", Phase)
def test_no_transition_leads_past_the_rules(phase: Phase) -> None:
    requested = samples.resource().request_deletion(samples.NOW)

    entered = requested.enter(phase, samples.NOW)

    assert entered.machine_phase in {
        Phase.DEREGISTERING,
        Phase.DEPROVISIONING,
        Phase.DELETED,
    }
