"""Each closed set is what the seeds name, and the manifests and pages say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml

from function.contract.conditions import Reason
from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate.errors import BrokerError, RefusedError, TokenRevocationFailedError
from reconciler.domain.aggregate.phase import Action
from reconciler.domain.events.audit import AuditAction
from reconciler.domain.events.lifecycle import EventType

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "states.md"
XRD = ROOT / "xrds" / "provisionedresource.yaml"
RECORD = ROOT / "deploy" / "crds" / "provisioning.plexsphere.com_provisioningrecords.yaml"

SEEDS: dict[type[StrEnum], list[str]] = {
    Phase: [
        *("Pending", "Provisioning", "Enrolling", "Ready", "Failed"),
        *("Deregistering", "Deprovisioning", "Deleted"),
    ],
    Action: ["Noop", "Apply", "DeregisterNode", "DeleteSubstrate"],
    EventType: [
        f"broker.ProvisionedResource{what}"
        for what in ("Requested", "Ready", "Failed", "Deleting", "Deleted")
    ],
    BootstrapState: ["None", "Issued", "Consumed", "Expired", "Revoked"],
}
"""Verbatim: they are wire contract."""

CODES = [
    *("ErrInvalidInput", "ErrBlueprintNotFound", "ErrCloudNotFound", "ErrCredentialNotFound"),
    *("ErrAssignmentNotFound", "ErrParameterValuesInvalid", "ErrProvisionedResourceNotFound"),
    *("ErrNamespaceNotReady", "ErrNodeDeregistrationFailed"),
]


def _values(members: Iterable[StrEnum]) -> list[str]:
    return [member.value for member in members]


def _errors(parent: type[BrokerError] = BrokerError) -> Iterable[type[BrokerError]]:
    for child in parent.__subclasses__():
        yield child
        yield from _errors(child)


def _table(section: str) -> list[tuple[str, ...]]:
    """Return the quoted words of each row of a section's table, in order."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [tuple(re.findall(r"`([^`]+)`", row)) for row in rows]


def _status(path: Path) -> dict[str, Any]:
    version = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert isinstance(schema, dict)
    return schema


@pytest.mark.parametrize("members", SEEDS, ids=lambda members: str(members.__name__))
def test_a_set_holds_the_seeds_words_and_no_other(members: type[StrEnum]) -> None:
    assert _values(members) == SEEDS[members]


@pytest.mark.parametrize("path", [XRD, RECORD], ids=["XRD", "record"])
def test_the_manifests_have_the_phases(path: Path) -> None:
    assert _status(path)["phase"]["enum"] == _values(Phase)


def test_the_record_has_the_token_states() -> None:
    states = _status(RECORD)["bootstrap"]["properties"]["state"]["enum"]

    assert states == _values(BootstrapState)


@pytest.mark.parametrize(
    ("section", "members"),
    [
        ("Phases", Phase),
        ("Actions", Action),
        ("Lifecycle events", EventType),
        ("Audit actions", AuditAction),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_page_has_them(section: str, members: type[StrEnum]) -> None:
    assert [row[0] for row in _table(section)] == _values(members)


def test_there_are_nine_error_codes() -> None:
    assert list(dict.fromkeys(error.code for error in _errors())) == CODES


def test_the_page_has_the_codes_and_their_reasons() -> None:
    first = {error.code: error.reason for error in _errors() if error.__base__ is BrokerError}

    assert [row[:2] for row in _table("Errors")] == [(code, first[code]) for code in CODES]


def test_a_code_that_two_errors_share_is_one_of_the_known_two() -> None:
    others = [error for error in _errors() if error.__base__ is not BrokerError]

    shared = {error for error in others if not issubclass(error, RefusedError)}
    assert shared == {TokenRevocationFailedError}
    assert {error.code for error in others} == {"ErrInvalidInput", "ErrNodeDeregistrationFailed"}


def test_every_error_that_a_condition_shows_has_a_reason_of_the_contract() -> None:
    shown = {error.reason for error in _errors()}

    assert shown - set(_values(Reason)) <= {"InvalidInput", "ProvisionedResourceNotFound"}
