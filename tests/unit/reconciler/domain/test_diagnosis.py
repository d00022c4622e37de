"""Why a resource is not Ready: the culprit, the actor, the next command and the runbook entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from function.contract.conditions import Reason
from function.contract.strategy import Phase
from reconciler.domain.diagnosis.diagnose import diagnose
from reconciler.domain.diagnosis.facts import (
    ConditionFacts,
    DiagnosisFacts,
    NodeFacts,
    ObjectFacts,
    Presence,
)
from reconciler.domain.diagnosis.remedies import REMEDIES, Actor

RUNBOOKS: Final = Path(__file__).parents[4] / "docs" / "runbooks"
GROUP: Final = "provisioning.plexsphere.com"
SINCE: Final = "2026-11-23T12:00:00Z"

Conditions = Mapping[str, tuple[str, str, str]]


def thing(kind: str, name: str, conditions: Conditions, **changes: object) -> ObjectFacts:
    """Return an object with conditions given as status, reason and message."""
    facts = ObjectFacts(
        resource=f"{kind.lower()}s.{GROUP}",
        kind=kind,
        name=name,
        created=SINCE,
        conditions={
            each: ConditionFacts(status=status, reason=reason, message=message, since=SINCE)
            for each, (status, reason, message) in conditions.items()
        },
    )
    return replace(facts, **changes)  # type: ignore[arg-type]  # the fields' own types


SYNCED: Final = {"Synced": ("True", "ReconcileSuccess", "")}
NOT_READY: Final = {**SYNCED, "Ready": ("False", "Creating", "")}
XR: Final = thing("ProvisionedResource", "web-1", NOT_READY)
GONE: Final = thing("ProvisionedResource", "web-1", {}, presence=Presence.ABSENT)


def record(conditions: Conditions, **changes: object) -> ObjectFacts:
    return thing("ProvisioningRecord", "web-1-abc", conditions, **changes)


def facts_of(node: NodeFacts | None = None, xr: ObjectFacts = XR) -> DiagnosisFacts:
    nodes = () if node is None else (node,)
    return DiagnosisFacts(namespace="shop", xr=xr, retry=2, nodes=nodes)


def stalled(reason: str) -> ObjectFacts:
    return record(
        {"Ready": ("False", reason, "It failed."), "Stalled": ("True", reason, "It failed.")}
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_names_who_acts(reason: Reason) -> None:
    found = diagnose(facts_of(NodeFacts(record=stalled(reason))))

    assert found.reason == reason
    assert found.explanation == "It failed."
    assert found.since == SINCE
    assert found.culprit == "ProvisioningRecord/web-1-abc"
    assert found.actor is REMEDIES[reason].actor


@pytest.mark.parametrize("runbook", sorted({each.runbook for each in REMEDIES.values()} - {""}))
def test_a_runbook_entry_that_is_named_is_there(runbook: str) -> None:
    page, number = re.fullmatch(r"(\w+\.md), entry (\d)", runbook).groups()  # type: ignore[union-attr]  # no match fails the test

    text = (RUNBOOKS / page).read_text(encoding="utf-8")
    assert re.search(rf"^## {number}\. ", text, re.MULTILINE)


def test_a_retry_that_the_kind_does_not_know_is_not_proposed() -> None:
    backend = replace(facts_of(), xr=thing("Backend", "shop", NOT_READY))

    found = diagnose(replace(backend, nodes=(NodeFacts(record=stalled(Reason.FAILED)),)))

    assert found.command.startswith("kubectl -n shop describe ")


@pytest.mark.parametrize("reason", [Reason.TOKEN_REVOKED, Reason.DEREGISTERED_ELSEWHERE])
def test_nothing_but_a_record_is_proposed_for_deletion(reason: Reason) -> None:
    of_record = diagnose(facts_of(NodeFacts(record=stalled(reason))))
    xr = thing("ProvisionedResource", "web-1", {**SYNCED, "Stalled": ("True", reason, "x")})
    of_xr = diagnose(facts_of(xr=xr))

    assert of_record.command.endswith(f"delete provisioningrecords.{GROUP}/web-1-abc")
    assert " delete " not in of_xr.command


@pytest.mark.parametrize("reason", [Reason.FAILED, Reason.SUBSTRATE_LOST])
def test_a_retry_is_one_more_than_the_last(reason: Reason) -> None:
    found = diagnose(facts_of(NodeFacts(record=stalled(reason))))

    assert '"retry":3' in found.command
    assert f"provisionedresources.{GROUP}/web-1" in found.command


def test_a_reason_that_a_provider_gave_starts_over_by_hand() -> None:
    found = diagnose(facts_of(NodeFacts(record=stalled("QuotaExceeded"))))

    assert found.reason == "QuotaExceeded"
    assert '"retry":3' in found.command


COMPLAINT: Final = {"Synced": ("False", "ReconcileError", "no room in nbg1")}
SILENT: Final = {"Ready": ("False", "", "")}


@pytest.mark.parametrize(
    ("conditions", "entry"),
    [
        ({"Ready": ("False", "WaitingForSubstrate", "not ready")}, "provisioning.md, entry 2"),
        (
            {
                "Ready": ("False", "ProvisioningTimeout", "late"),
                "Stalled": ("True", "ProvisioningTimeout", "late"),
            },
            "provisioning.md, entry 7",
        ),
    ],
    ids=["waiting", "late"],
)
def test_the_lowest_object_that_complains_is_the_culprit(
    conditions: Conditions, entry: str
) -> None:
    node = NodeFacts(
        record=record(conditions),
        phase=Phase.PROVISIONING,
        substrate=thing("XGenericVM", "pr-1", NOT_READY),
        composed=(
            thing("Network", "net", {"Ready": ("True", "Available", "")}),
            thing("Machine", "pr-1", COMPLAINT, warning="quota of the project is used up"),
            thing("Disk", "pr-1", SILENT),
        ),
    )

    found = diagnose(facts_of(node))

    assert found.culprit == "Machine/pr-1"
    assert found.explanation == "no room in nbg1: quota of the project is used up"
    assert found.actor is Actor.PROVIDER
    assert found.command == f"kubectl -n shop describe machines.{GROUP}/pr-1"
    assert found.runbook == entry


def test_a_record_without_a_status_waits_for_the_reconciler() -> None:
    found = diagnose(facts_of(NodeFacts(record=record({}))))

    assert (found.reason, found.actor) == ("WaitingForReconciler", Actor.OPERATOR)


def test_an_xr_that_crossplane_never_saw_names_crossplane() -> None:
    found = diagnose(facts_of(xr=thing("ProvisionedResource", "web-1", {})))

    assert found.reason == "NotReconciled"
    assert "crossplane-system" in found.command


def test_a_pipeline_that_fails_is_told_in_crossplanes_words() -> None:
    xr = thing("ProvisionedResource", "web-1", {"Synced": ("False", "ReconcileError", "no step")})

    found = diagnose(facts_of(xr=xr))

    assert (found.culprit, found.explanation) == ("ProvisionedResource/web-1", "no step")


def test_what_the_function_refuses_is_told_before_crossplanes_words() -> None:
    refused = {"Admitted": ("False", "InvalidParameters", "spec.parameters.size: must be given")}
    xr = thing(
        "ProvisionedResource",
        "web-1",
        {"Synced": ("False", "ReconcileError", "fatal result"), **refused},
    )

    found = diagnose(facts_of(xr=xr))

    assert found.explanation == "spec.parameters.size: must be given"
    assert found.actor is Actor.AUTHOR


def test_an_xr_without_a_record_and_a_word_names_the_pipeline() -> None:
    assert diagnose(facts_of()).reason == "NoRecord"


@pytest.mark.parametrize("whose", ["xr", "record"])
def test_a_paused_object_stops_everything(whose: str) -> None:
    held = record({"Ready": ("True", "Registered", "")}, paused=whose == "record")
    xr = replace(XR, paused=whose == "xr")

    found = diagnose(facts_of(NodeFacts(record=held), xr))

    assert found.reason == "Paused"
    assert found.command.endswith("crossplane.io/paused-")


@pytest.mark.parametrize("xr", [GONE, replace(XR, deleting_since=SINCE)], ids=["gone", "going"])
def test_a_deletion_is_explained_by_the_record_that_is_left(xr: ObjectFacts) -> None:
    stuck = {
        "Ready": ("False", "Deprovisioning", "The substrate is being deleted."),
        "SubstrateDeleted": ("False", "ChildStuck", "Machine/pr-1 has finalizer x."),
    }
    node = NodeFacts(record=record(stuck, deleting_since=SINCE), phase=Phase.DEPROVISIONING)

    found = diagnose(facts_of(node, xr))

    assert (found.reason, found.runbook) == ("ChildStuck", "deletion.md, entry 3")
    assert found.explanation == "Machine/pr-1 has finalizer x."


def test_a_refused_deletion_is_told_before_what_it_leaves_standing() -> None:
    refused = {
        "Ready": ("False", "RightsMissing", "cannot delete XGenericVM/pr-1: this one stays"),
        "SubstrateDeleted": ("False", "ChildStuck", "Machine/pr-1 is not being deleted."),
    }
    node = NodeFacts(record=record(refused, deleting_since=SINCE), phase=Phase.DEPROVISIONING)

    found = diagnose(facts_of(node, GONE))

    assert (found.reason, found.runbook) == ("RightsMissing", "deletion.md, entry 2")


@pytest.mark.parametrize("xr", [GONE, replace(XR, deleting_since=SINCE)], ids=["gone", "going"])
def test_a_deletion_that_nobody_began_awaits_the_reconciler(xr: ObjectFacts) -> None:
    ready = record({"Ready": ("True", "Registered", "")}, deleting_since=SINCE)

    found = diagnose(facts_of(NodeFacts(record=ready, phase=Phase.READY), xr))

    assert (found.reason, found.ready) == ("WaitingForReconciler", False)


def test_an_xr_that_goes_is_never_ready() -> None:
    ready = {"Ready": ("True", "Registered", "")}
    xr = thing("ProvisionedResource", "web-1", {**SYNCED, **ready}, deleting_since=SINCE)

    assert not diagnose(facts_of(NodeFacts(record=record(ready)), xr)).ready


def test_a_wrong_name_beside_a_ready_node_is_told() -> None:
    refused = ("True", "ResourceNotFound", "input.resources[0].name: 'front0' is none")
    xr = thing("Backend", "shop", {**NOT_READY, "Stalled": refused})
    node = NodeFacts(record=record({"Ready": ("True", "Registered", "")}), phase=Phase.READY)

    found = diagnose(facts_of(node, xr))

    assert (found.culprit, found.reason) == ("Backend/shop", "ResourceNotFound")


def test_a_stalled_node_is_told_before_one_that_waits() -> None:
    waiting = NodeFacts(record=record({"Ready": ("False", "WaitingForSubstrate", "soon")}))
    broken = NodeFacts(record=stalled(Reason.REGISTRATION_TIMEOUT))

    found = diagnose(replace(facts_of(), nodes=(waiting, broken)))

    assert found.reason == Reason.REGISTRATION_TIMEOUT


def test_a_call_that_the_cloud_refuses_is_told_before_what_waits_for_it() -> None:
    quota = {"Synced": ("False", "ReconcileError", "403 quota"), "Ready": ("False", "", "")}
    node = NodeFacts(
        record=record({"Ready": ("False", "WaitingForSubstrate", "soon")}),
        substrate=thing("XGenericVM", "pr-1", NOT_READY),
        composed=(thing("Network", "net", quota), thing("Machine", "pr-1", NOT_READY)),
    )

    assert diagnose(facts_of(node)).culprit == "Network/net"


def test_an_orphaned_record_is_said_to_be_one() -> None:
    orphan = record({"Ready": ("True", "Registered", ""), "Orphaned": ("True", "Orphaned", "o")})

    assert diagnose(facts_of(NodeFacts(record=orphan), GONE)).reason == "Orphaned"


def test_the_last_finalizers_of_an_xr_are_named() -> None:
    going = replace(XR, deleting_since=SINCE, finalizers=("composite.crossplane.io",))

    assert "composite.crossplane.io" in diagnose(facts_of(xr=going)).explanation


def test_what_is_not_there_is_not_found() -> None:
    found = diagnose(facts_of(xr=GONE))

    assert not found.found
    assert found.command == f"kubectl get provisionedresources.{GROUP} --all-namespaces"


def test_what_may_not_be_read_is_listed_and_not_guessed() -> None:
    hidden = thing("Machine", "pr-1", {}, presence=Presence.FORBIDDEN)
    waiting = record({"Ready": ("False", "WaitingForSubstrate", "not ready yet")})
    node = NodeFacts(record=waiting, substrate=thing("XGenericVM", "pr-1", {}), composed=(hidden,))

    found = diagnose(facts_of(node))

    assert found.culprit == "ProvisioningRecord/web-1-abc"
    assert found.unreadable == ("Machine/pr-1",)


def test_nothing_that_could_be_read_is_an_administrators() -> None:
    forbidden = thing("ProvisionedResource", "web-1", {}, presence=Presence.FORBIDDEN)

    found = diagnose(replace(facts_of(xr=forbidden), records=Presence.FORBIDDEN))

    assert found.actor is Actor.ADMIN
    assert found.unreadable == ("ProvisioningRecords", "ProvisionedResource/web-1")


def test_a_ready_one_is_ready() -> None:
    ready = {"Ready": ("True", "Registered", "")}
    node = NodeFacts(record=record(ready), phase=Phase.READY)

    found = diagnose(facts_of(node, thing("ProvisionedResource", "web-1", {**SYNCED, **ready})))

    assert found.ready
    assert found.command == ""


def test_every_combination_of_what_is_there_has_an_answer() -> None:
    statuses = ("", "True", "False", "Unknown")
    for presence, records in product(Presence, Presence):
        for ready, synced, admitted in product(statuses, repeat=3):
            said = {"Ready": ready, "Synced": synced, "Admitted": admitted}
            conditions = {each: (is_, "Reason", "") for each, is_ in said.items() if is_}
            xr = thing("ProvisionedResource", "web-1", conditions, presence=presence)
            for node in (None, NodeFacts(record=record(conditions))):
                found = diagnose(replace(facts_of(node, xr), records=records))
                assert found.reason
                assert found.explanation
