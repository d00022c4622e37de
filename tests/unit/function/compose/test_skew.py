"""A reconciler of another version: its unreadable values change nothing and stop nothing."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract.conditions import ConditionType
from function.model.call import Outcome
from tests.unit.function import given

NODE = {"id": "n-1", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
NEWER = {
    "phase": {"phase": "Dancing"},
    "bootstrap.state": {"bootstrap": {"generation": 1, "state": "Leased"}},
    "enrolment.documentForm": {
        "enrolment": {**given.status()["enrolment"], "documentForm": "ignition"}
    },
    "accepted.provider": {"accepted": given.declaration(provider="moon")},
    "accepted.meshRole": {"accepted": given.declaration(meshRole="relay")},
    "substrate": {"substrate": "Paused"},
    "node.meshIP": {"node": {**NODE, "meshIP": ["100.64.0.7", "fd00::7"]}},
    "xrName": {"xrName": {"name": given.XR_NAME}},
}


def answer(status: dict[str, Any], *, born: bool) -> Outcome:
    resources = {"record": given.record(given.status(**status))}
    if born:
        resources["substrate"] = given.substrate(given.READY)
    found = given.required(token=given.secret(), substrate=None)
    return given.answer(resources=resources, found=found)


@pytest.mark.parametrize(("field", "status"), NEWER.items(), ids=list(NEWER))
def test_an_unreadable_status_keeps_the_substrate_as_it_is(
    field: str, status: dict[str, Any]
) -> None:
    outcome = answer(status, born=True)

    assert outcome.substrate is not None
    kept = outcome.substrate.manifest
    seen = given.substrate()["spec"]
    assert kept["metadata"]["name"] == given.XR_NAME
    assert kept["spec"] == {key: seen[key] for key in ("parameters", "userData", "cloudTags")}
    assert outcome.record is not None
    admitted = given.verdict(outcome, ConditionType.ADMITTED)
    assert (admitted.status, admitted.reason) == (None, "StatusUnreadable")
    assert admitted.message.startswith(f"ProvisioningRecord.status.{field}")


@pytest.mark.parametrize("status", NEWER.values(), ids=list(NEWER))
def test_an_unreadable_status_gives_birth_to_nothing(status: dict[str, Any]) -> None:
    outcome = answer(status, born=False)

    assert outcome.substrate is None
    assert outcome.record is not None
    assert not outcome.ready


def test_a_ready_node_stays_ready_in_a_newer_phase() -> None:
    assert answer({"phase": "Dancing", "node": NODE}, born=True).ready


def test_absent_is_honoured_in_a_newer_phase() -> None:
    outcome = answer({"phase": "Dancing", "substrate": "Absent"}, born=True)

    assert outcome.substrate is None
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["released"] is True


def test_what_the_record_says_stands_while_it_cannot_be_looked_up() -> None:
    held = given.record(given.status(xrName=7))
    held["spec"]["observed"] = {"exists": True, "ready": True, "failed": False, "reason": ""}

    outcome = given.answer(resources={"record": held})

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"] == held["spec"]["observed"]


def test_an_unreadable_reference_on_the_record_is_passed_over() -> None:
    held = given.record(given.status())
    held["spec"]["substrate"] = [{"group": "b", "name": given.XR_NAME}, "x"]

    outcome = given.answer(resources={"record": held, "substrate": given.substrate()})

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["substrate"][0]["kind"] == "XGenericVM"
    assert given.answer(resources={"record": held}).substrate is None


def test_a_users_mistake_is_told_before_the_reconcilers() -> None:
    held = given.record(given.status(phase="Dancing"))

    outcome = given.answer(given.xr(parameters={}), resources={"record": held})

    assert given.verdict(outcome, ConditionType.ADMITTED).reason == "InvalidParameters"
