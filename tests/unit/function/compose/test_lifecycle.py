"""The way of one resource, as the pure function answers each of its moments."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType
from function.model.call import Outcome, Ttl
from tests.unit.function import given

ADMITTED = ConditionType.ADMITTED
INJECTED = ConditionType.BOOTSTRAP_INJECTED
REGISTERED = ConditionType.NODE_REGISTERED
FAILED = ConditionType.PROVISIONING_FAILED
TAGGED = ConditionType.CLOUD_TAGS_COMPLETE
PROGRESS = (ConditionType.STALLED, ConditionType.RECONCILING)

NODE = {"id": "n-1", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}


def said(outcome: Outcome, kind: ConditionType) -> tuple[bool | None, str]:
    found = given.verdict(outcome, kind)
    return found.status, found.reason


def manifest(outcome: Outcome) -> dict[str, Any]:
    assert outcome.substrate is not None
    return outcome.substrate.manifest


def born() -> Outcome:
    return given.answer(
        resources={"record": given.record(given.status())},
        found=given.required(token=given.secret(), substrate=None),
    )


def alive(*conditions: dict[str, Any], **status: Any) -> Outcome:
    return given.answer(
        resources={
            "record": given.record(given.status(**status)),
            "substrate": given.substrate(*conditions),
        }
    )


def test_a_new_xr_composes_the_record_alone() -> None:
    outcome = given.answer()

    assert outcome.record is not None
    assert outcome.substrate is None
    assert not outcome.ready
    assert outcome.ttl is Ttl.STEADY
    assert said(outcome, ADMITTED) == (None, "WaitingForReconciler")
    assert said(outcome, INJECTED) == (False, "WaitingForReconciler")


def test_the_record_is_what_the_contract_shows() -> None:
    outcome = given.answer()

    assert outcome.record is not None
    assert outcome.record.manifest == {
        "apiVersion": "provisioning.plexsphere.com/v1alpha1",
        "kind": "ProvisioningRecord",
        "metadata": {
            "name": given.RECORD,
            "namespace": given.NAMESPACE,
            "labels": {"provisioning.plexsphere.com/xr": "web-1"},
            "finalizers": ["provisioning.plexsphere.com/teardown"],
        },
        "spec": {
            "declaration": given.declaration(given=["region"]),
            "substrate": [],
            "observed": {"exists": False, "ready": False, "failed": False, "reason": ""},
        },
    }


def test_an_accepted_record_with_its_token_gives_birth() -> None:
    outcome = born()

    made = manifest(outcome)
    assert made["apiVersion"] == "blueprints.plexsphere.com/v1alpha1"
    assert made["kind"] == "XGenericVM"
    assert made["metadata"] == {
        "name": given.XR_NAME,
        "namespace": given.NAMESPACE,
        "labels": {names.LABEL_HOLD: "true", names.LABEL_RECORD: given.RECORD},
        "annotations": {names.ANNOTATION_GENERATION: "1"},
    }
    assert made["spec"]["parameters"] == given.declaration()["parameters"]
    assert made["spec"]["cloudTags"] == {"platform/env": "prod", "team": "checkout"}
    assert given.TOKEN in made["spec"]["userData"]
    assert said(outcome, INJECTED) == (True, "Injected")
    assert said(outcome, REGISTERED) == (False, "WaitingForRegistration")
    assert outcome.status == {
        "phase": "Provisioning",
        "provisionedResourceID": given.ID,
        "xrName": given.XR_NAME,
    }


def test_the_record_names_the_substrate_when_its_name_is_known() -> None:
    outcome = born()

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["substrate"] == [
        {
            "apiVersion": "blueprints.plexsphere.com/v1alpha1",
            "kind": "XGenericVM",
            "name": given.XR_NAME,
        }
    ]


@pytest.mark.parametrize(
    ("bootstrap", "secret", "ttl"),
    [
        ({"secretRef": {"name": "s"}, "generation": 1, "state": "Issued"}, None, Ttl.WAITING),
        ({"generation": 0, "state": "None"}, None, Ttl.STEADY),
        (
            {"secretRef": {"name": "s"}, "generation": 2, "state": "Issued"},
            given.secret(generation=1),
            Ttl.WAITING,
        ),
        (
            {"secretRef": {"name": "s"}, "generation": 1, "state": "Consumed"},
            given.secret(generation=1),
            Ttl.WAITING,
        ),
    ],
    ids=["secret absent", "no secret named", "another generation", "already consumed"],
)
def test_without_a_live_token_nothing_is_created(
    bootstrap: dict[str, Any], secret: dict[str, Any] | None, ttl: Ttl
) -> None:
    outcome = given.answer(
        resources={"record": given.record(given.status(bootstrap=bootstrap))},
        found=given.required(token=secret, substrate=None),
    )

    assert outcome.substrate is None
    assert outcome.record is not None
    assert said(outcome, INJECTED) == (False, "WaitingForToken")
    assert outcome.ttl is ttl


def test_a_secret_of_another_type_is_no_token() -> None:
    foreign = given.secret() | {"type": "Opaque"}

    outcome = given.answer(
        resources={"record": given.record(given.status())},
        found=given.required(token=foreign, substrate=None),
    )

    assert outcome.substrate is None


def test_bootstrap_fields_are_sticky_and_the_rest_is_rendered_anew() -> None:
    accepted = given.declaration(
        parameters={"region": "nbg1", "instanceType": "big", "diskSizeGb": 80}, labels={"a": "b"}
    )

    outcome = alive(accepted=accepted, bootstrap={"generation": 1, "state": "Consumed"})

    made = manifest(outcome)
    assert made["spec"] == {
        "parameters": {"region": "nbg1", "instanceType": "big", "diskSizeGb": 80},
        "cloudTags": {"a": "b"},
        "userData": given.substrate()["spec"]["userData"],
    }
    assert made["metadata"]["annotations"] == {names.ANNOTATION_GENERATION: "1"}


def test_an_edit_waits_for_the_reconciler() -> None:
    edited = given.xr(parameters={"region": "fsn1"})
    listed = given.blueprint()["spec"]["parameters"]
    mutable = given.blueprint(parameters=[listed[0] | {"mutable": True}, *listed[1:]])

    outcome = given.answer(
        edited,
        resources={"record": given.record(given.status()), "substrate": given.substrate()},
        found=given.required(blueprint=mutable),
    )

    assert manifest(outcome)["spec"]["parameters"]["region"] == "nbg1"
    assert outcome.record is not None
    declared = outcome.record.manifest["spec"]["declaration"]
    assert declared["parameters"]["region"] == "fsn1"


def test_kind_and_name_come_from_the_observed_object() -> None:
    observed = given.substrate() | {"kind": "XOlderVM"}
    record = given.record(given.status())
    record["spec"]["substrate"] = [
        {"apiVersion": observed["apiVersion"], "kind": "XOlderVM", "name": given.XR_NAME}
    ]

    outcome = given.answer(resources={"record": record, "substrate": observed})

    assert manifest(outcome)["kind"] == "XOlderVM"
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["substrate"][0]["kind"] == "XOlderVM"


def test_what_others_wrote_on_the_substrate_is_never_returned() -> None:
    observed = given.substrate()
    observed["metadata"]["annotations"][names.ANNOTATION_RELEASED] = "true"

    outcome = given.answer(
        resources={"record": given.record(given.status()), "substrate": observed}
    )

    made = manifest(outcome)
    assert set(made) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(made["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert set(made["metadata"]["labels"]) == {names.LABEL_HOLD, names.LABEL_RECORD}
    assert set(made["metadata"]["annotations"]) == {names.ANNOTATION_GENERATION}
    assert "crossplane" not in made["spec"]


def test_a_lost_generation_stamp_is_remembered_by_the_record() -> None:
    observed = given.substrate()
    del observed["metadata"]["annotations"][names.ANNOTATION_GENERATION]
    held = given.record(given.status())
    held["spec"]["observed"] = {"exists": True, "bootstrapGeneration": 1}

    outcome = given.answer(resources={"record": held, "substrate": observed})

    annotations = manifest(outcome)["metadata"]["annotations"]
    assert annotations == {names.ANNOTATION_GENERATION: "1"}


@pytest.mark.parametrize(
    ("conditions", "status", "ready"),
    [
        ([given.READY], {"node": NODE, "phase": "Ready"}, True),
        ([given.READY], {"phase": "Ready"}, True),
        ([given.READY], {"node": NODE, "phase": "Enrolling"}, True),
        ([given.READY], {"phase": "Enrolling"}, False),
        ([given.READY], {"node": NODE, "phase": "Failed"}, False),
        ([], {"node": NODE, "phase": "Ready"}, False),
        ([given.condition("Ready", "Unknown")], {"node": NODE, "phase": "Ready"}, False),
    ],
)
def test_the_composite_is_ready_once_substrate_and_node_are(
    conditions: list[dict[str, Any]], status: dict[str, Any], ready: bool
) -> None:
    outcome = alive(*conditions, **status)

    assert outcome.ready is ready
    assert outcome.record is not None
    assert outcome.record.ready is (status["phase"] == "Ready")


def test_the_node_shows_in_the_status() -> None:
    outcome = alive(given.READY, node=NODE, phase="Ready")

    assert outcome.status["node"] == {"id": "n-1", "meshIP": "100.64.0.7"}
    assert said(outcome, REGISTERED) == (True, "Registered")


def test_the_observed_facts_reach_the_record() -> None:
    broken = given.condition("ProvisioningFailed", "True", "QuotaExceeded", "no more servers")

    outcome = alive(given.READY, broken)

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"] == {
        "exists": True,
        "ready": True,
        "failed": True,
        "reason": "QuotaExceeded: no more servers",
        "bootstrapGeneration": 1,
        "uid": "99999999-2222-3333-4444-555555555555",
    }
    assert said(outcome, FAILED) == (True, "QuotaExceeded")


def test_a_failures_reason_is_a_sentence_and_no_log() -> None:
    broken = given.condition("ProvisioningFailed", "True", "QuotaExceeded", "no " * 400)

    outcome = alive(given.READY, broken)

    assert outcome.record is not None
    reason = outcome.record.manifest["spec"]["observed"]["reason"]
    assert len(reason) == 512
    assert f"QuotaExceeded: {'no ' * 400}".startswith(reason)


@pytest.mark.parametrize("uid", [None, "", 7, "x" * 254])
def test_a_uid_that_does_not_fit_the_record_is_left_out(uid: object) -> None:
    observed = given.substrate(given.READY)
    observed["metadata"]["uid"] = uid

    outcome = given.answer(
        resources={"record": given.record(given.status()), "substrate": observed}
    )

    assert outcome.record is not None
    assert "uid" not in outcome.record.manifest["spec"]["observed"]


def test_a_substrate_in_the_place_of_a_lost_one_is_not_ready() -> None:
    lost = given.condition("Stalled", "True", "SubstrateLost", "another one stands there")

    outcome = alive(given.READY, node=NODE, phase="Pending", conditions=[lost])

    assert outcome.substrate is not None
    assert not outcome.ready


@pytest.mark.parametrize("state", ["Unknown", "False"])
def test_only_a_true_failure_is_one(state: str) -> None:
    outcome = alive(given.condition("ProvisioningFailed", state, "FatalError", "x"))

    assert said(outcome, FAILED) == (False, "NotFailed")
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"]["failed"] is False


def test_a_token_in_a_providers_message_is_redacted() -> None:
    quoted = given.condition("ProvisioningFailed", "True", "Bad", f"user data {given.TOKEN} bad")

    outcome = alive(quoted)

    assert outcome.record is not None
    assert given.TOKEN not in str(outcome.record.manifest)
    assert given.TOKEN not in given.verdict(outcome, FAILED).message


def test_a_blueprint_says_what_its_failure_looks_like() -> None:
    refused = given.condition("LastCreate", "False", "ImageNotFound", "no such image")
    usual = given.condition("ProvisioningFailed", "True", "Quota", "not asked for")
    observed = {
        "record": given.record(given.status()),
        "substrate": given.substrate(refused, usual),
    }
    blueprint = given.blueprint(terminalConditions=[{"type": "LastCreate", "status": "False"}])
    found = {**given.required(), "blueprint": blueprint}

    outcome = given.answer(resources=observed, found=found)

    failed = given.verdict(outcome, FAILED)
    assert (failed.status, failed.reason, failed.message) == (
        True,
        "ImageNotFound",
        "no such image",
    )
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"]["failed"] is True


def test_a_late_substrate_has_not_failed_and_says_what_it_lacks() -> None:
    late = given.condition("Stalled", "True", "ProvisioningTimeout", "Server: quota exceeded")

    outcome = alive(phase="Provisioning", conditions=[late])

    failed = given.verdict(outcome, FAILED)
    assert (failed.status, failed.reason) == (False, "ProvisioningTimeout")
    assert failed.message == "Server: quota exceeded"


def test_a_failed_phase_is_told() -> None:
    stalled = given.condition("Stalled", "True", "Failed", "the cloud refused it")

    outcome = alive(phase="Failed", conditions=[stalled])

    failed = given.verdict(outcome, FAILED)
    assert (failed.status, failed.reason) == (True, "Failed")
    assert failed.message == "the cloud refused it"


def test_absent_drops_the_substrate_and_keeps_the_record() -> None:
    outcome = alive(given.READY, substrate="Absent", phase="Deprovisioning")

    assert outcome.substrate is None
    assert outcome.record is not None
    assert not outcome.ready
    assert said(outcome, INJECTED) == (False, "Deprovisioning")
    assert outcome.record.manifest["spec"]["observed"]["exists"] is True


@pytest.mark.parametrize("seen", ["Absent", "Present", None, "Elsewhere"])
@pytest.mark.parametrize("going", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
@pytest.mark.parametrize("parameters", [{"region": "nbg1"}, {}], ids=["declared", "refused"])
@pytest.mark.parametrize("observed", [{}, {"substrate": given.substrate(given.READY)}])
def test_the_record_says_released_exactly_when_absent_was_seen(
    seen: str | None, going: dict[str, Any], parameters: dict[str, Any], observed: dict[str, Any]
) -> None:
    held = given.record(given.status(substrate=seen), **going)

    outcome = given.answer(given.xr(parameters=parameters), resources={"record": held, **observed})

    assert outcome.record is not None
    assert outcome.record.manifest["spec"].get("released", False) is (seen == "Absent")
    if seen == "Absent":
        assert outcome.substrate is None


def test_a_new_record_is_not_released() -> None:
    outcome = given.answer()

    assert outcome.record is not None
    assert "released" not in outcome.record.manifest["spec"]


def test_an_absent_record_keeps_naming_what_it_protected() -> None:
    held = given.record(given.status(substrate="Absent"))
    held["spec"]["substrate"] = [{"apiVersion": "b/v1", "kind": "X", "name": given.XR_NAME}]

    outcome = given.answer(resources={"record": held})

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["substrate"] == held["spec"]["substrate"]
    assert outcome.record.manifest["spec"]["observed"]["exists"] is False


def test_a_terminating_record_keeps_the_substrate_and_its_finalizer() -> None:
    going = given.record(given.status(), deletionTimestamp="2026-01-01T00:00:00Z")

    outcome = given.answer(resources={"record": going, "substrate": given.substrate()})

    assert outcome.substrate is not None
    assert outcome.record is not None
    assert outcome.record.manifest["metadata"]["finalizers"] == [names.FINALIZER]
    assert not outcome.ready


def test_a_terminating_record_creates_nothing() -> None:
    going = given.record(given.status(), deletionTimestamp="2026-01-01T00:00:00Z")

    outcome = given.answer(
        resources={"record": going}, found=given.required(token=given.secret(), substrate=None)
    )

    assert outcome.substrate is None
    assert "token" not in outcome.requirements
    assert "substrate" not in outcome.requirements


def test_a_terminating_record_adopts_nothing() -> None:
    going = given.record(given.status(), deletionTimestamp="2026-01-01T00:00:00Z")

    outcome = given.answer(
        resources={"record": going}, found=given.required(substrate=given.substrate())
    )

    assert outcome.substrate is None


def test_a_finalizer_is_not_put_back_on_a_terminating_record() -> None:
    going = given.record(given.status(), deletionTimestamp="2026-01-01T00:00:00Z")
    going["metadata"]["finalizers"] = ["foregroundDeletion"]

    outcome = given.answer(resources={"record": going})

    assert outcome.record is not None
    assert "finalizers" not in outcome.record.manifest["metadata"]


def test_a_vanished_record_leaves_the_substrate_and_comes_again() -> None:
    outcome = given.answer(resources={"substrate": given.substrate()})

    assert outcome.substrate is not None
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"]["exists"] is True
    assert outcome.record.manifest["spec"]["substrate"][0]["name"] == given.XR_NAME


def test_an_orphaned_substrate_is_adopted_without_its_token() -> None:
    outcome = given.answer(
        resources={
            "record": given.record(given.status(bootstrap={"generation": 1, "state": "Consumed"}))
        },
        found=given.required(substrate=given.substrate(given.READY)),
    )

    assert manifest(outcome)["spec"]["userData"] == given.substrate()["spec"]["userData"]
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"]["exists"] is True


def reapplied(**found: dict[str, Any] | None) -> Outcome:
    """The first run of an XR: nothing is observed, everything is looked up."""
    return given.answer(found=given.required(**found))


def test_an_xr_applied_again_adopts_record_and_substrate_in_its_first_run() -> None:
    spent = {"generation": 1, "state": "Consumed"}
    left = given.record(given.status(bootstrap=spent, phase="Ready", node=NODE))

    outcome = reapplied(record=left, substrate=given.substrate(given.READY))

    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"]["exists"] is True
    assert outcome.record.manifest["spec"]["substrate"][0]["name"] == given.XR_NAME
    assert manifest(outcome)["spec"]["userData"] == given.substrate()["spec"]["userData"]
    assert outcome.ready


def test_what_an_adopted_record_says_stands_until_its_substrate_was_looked_up() -> None:
    left = given.record(given.status())
    left["spec"]["observed"] = {"exists": True, "ready": True, "failed": False, "reason": ""}

    outcome = reapplied(record=left)

    assert outcome.substrate is None
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"] == left["spec"]["observed"]
    assert {"record", "substrate", "token"} < set(outcome.requirements)


def test_a_record_that_is_going_is_not_given_life_by_an_xr_applied_again() -> None:
    going = given.record(given.status(), deletionTimestamp="2026-01-01T00:00:00Z")

    outcome = reapplied(record=going, substrate=given.substrate(), token=given.secret())

    assert outcome.substrate is None
    assert outcome.record is not None
    assert outcome.record.manifest["metadata"]["finalizers"] == [names.FINALIZER]


def test_the_record_is_looked_up_by_name_only_while_none_is_observed() -> None:
    fresh = [given.answer(found={}), given.answer(), reapplied(record=None)]
    observed = given.answer(resources={"record": given.record(given.status())})

    asked = [outcome.requirements["record"] for outcome in fresh]
    assert {(each.name, each.namespace) for each in asked} == {(given.RECORD, given.NAMESPACE)}
    assert "record" not in observed.requirements


def test_requirements_of_an_xr_applied_again_are_settled_in_the_third_call() -> None:
    left = {"record": given.record(given.status())}
    pair = {"blueprint": given.blueprint(), "credential": given.credential()}

    first = given.answer(found={})
    second = given.answer(found={**pair, **left})
    third = reapplied(**left, token=given.secret(), substrate=given.substrate())

    assert set(first.requirements) == {"blueprint", "credential", "record"}
    assert set(second.requirements) == {*first.requirements, "cloud", "substrate", "token"}
    assert third.requirements == second.requirements


def test_what_is_there_is_looked_for_before_anything_is_created() -> None:
    held = given.record(given.status())
    held["spec"]["observed"] = {"exists": True, "ready": True, "failed": False, "reason": ""}

    outcome = given.answer(resources={"record": held}, found=given.required(token=given.secret()))

    assert outcome.substrate is None
    assert outcome.requirements["substrate"].name == given.XR_NAME
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"] == held["spec"]["observed"]


def test_a_substrate_that_is_going_is_not_adopted() -> None:
    going = given.substrate()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    outcome = given.answer(
        resources={"record": given.record(given.status())},
        found=given.required(token=given.secret(), substrate=going),
    )

    assert outcome.substrate is None
    assert said(outcome, INJECTED) == (False, "WaitingForSubstrate")
    assert outcome.ttl is Ttl.WAITING
    assert outcome.record is not None
    assert outcome.record.manifest["spec"]["observed"]["exists"] is True


@pytest.mark.parametrize(
    "condition",
    [
        given.condition("Stalled", "True", "SubstrateLost", "the old node may still run"),
        given.condition("Admitted", "False", "CredentialNotAllowed", "the Project may not use it"),
    ],
)
def test_the_reconciler_can_hold_a_birth_back(condition: dict[str, Any]) -> None:
    outcome = given.answer(
        resources={"record": given.record(given.status(conditions=[condition]))},
        found=given.required(token=given.secret(), substrate=None),
    )

    assert outcome.substrate is None
    assert said(outcome, INJECTED)[0] is False


def test_the_reconcilers_refusal_shows_on_the_xr() -> None:
    refusal = given.condition("Admitted", "False", "CredentialNotAllowed", "not for this Project")

    outcome = given.answer(resources={"record": given.record({"conditions": [refusal]})})

    admitted = given.verdict(outcome, ADMITTED)
    assert (admitted.status, admitted.reason) == (False, "CredentialNotAllowed")
    assert admitted.message == "not for this Project"


def test_a_stalled_record_says_why_it_is_not_accepted() -> None:
    stalled = given.condition("Stalled", "True", "HoldPoliciesMissing", "no hold policy")

    outcome = given.answer(resources={"record": given.record({"conditions": [stalled]})})

    assert said(outcome, ADMITTED) == (None, "HoldPoliciesMissing")
    assert said(outcome, INJECTED) == (False, "HoldPoliciesMissing")


def test_a_standalone_resource_needs_no_token_and_no_node() -> None:
    accepted = given.declaration(meshRole="standalone", injectionStrategy="provider-secret")
    role = {"meshRole": "standalone", "injectionStrategy": "provider-secret"}
    found = given.required(blueprint=given.blueprint(**role))
    status = given.status(accepted=accepted, bootstrap={"generation": 0, "state": "None"})

    born = given.answer(
        resources={"record": given.record(status)}, found={**found, "substrate": None}
    )
    ready = given.answer(
        resources={
            "record": given.record(status),
            "substrate": given.substrate(given.READY, userData=None),
        },
        found=found,
    )

    assert "annotations" not in manifest(born)["metadata"]
    assert "userData" not in manifest(born)["spec"]
    assert "token" not in born.requirements
    assert ready.ready
    assert said(ready, INJECTED) == (False, "NotExpected")
    assert said(ready, REGISTERED) == (False, "NotExpected")


def test_a_standalone_resource_asks_for_no_token_that_a_status_names() -> None:
    accepted = given.declaration(meshRole="standalone", injectionStrategy="provider-secret")
    role = {"meshRole": "standalone", "injectionStrategy": "provider-secret"}
    found = {**given.required(blueprint=given.blueprint(**role)), "substrate": None}
    named, node = given.status(accepted=accepted), given.status()
    assert named["bootstrap"]["secretRef"]

    standalone = given.answer(resources={"record": given.record(named)}, found=found)
    enrolled = given.answer(resources={"record": given.record(node)}, found=given.required())

    assert "token" not in standalone.requirements
    assert "token" in enrolled.requirements


def test_every_answer_gives_every_condition_with_reason_and_message() -> None:
    moments = [given.answer(), born(), alive(), alive(substrate="Absent"), given.answer(found={})]

    for outcome in moments:
        given_types = [each.type for each in outcome.verdicts]
        assert given_types == [ADMITTED, INJECTED, REGISTERED, FAILED, TAGGED, *PROGRESS]
        assert all(each.reason and each.message for each in outcome.verdicts)


def test_a_providers_odd_reason_becomes_a_legal_one() -> None:
    outcome = alive(given.condition("ProvisioningFailed", "True", "not a reason!", ""))

    failed = given.verdict(outcome, FAILED)
    assert failed.reason == "ProvisioningFailed"
    assert failed.message


def test_its_own_output_fed_back_changes_nothing() -> None:
    first = born()
    record = given.record(given.status())
    assert first.record is not None
    record["spec"] = copy.deepcopy(first.record.manifest["spec"])
    substrate = copy.deepcopy(manifest(first))

    second = given.answer(resources={"record": record, "substrate": substrate})
    assert second.record is not None
    record["spec"] = copy.deepcopy(second.record.manifest["spec"])
    third = given.answer(resources={"record": record, "substrate": manifest(second)})

    assert manifest(second) == manifest(first)
    assert third == second


def test_requirements_do_not_change_once_everything_is_resolved() -> None:
    record = {"record": given.record(given.status())}

    first = given.answer(resources=record, found={})
    second = given.answer(
        resources=record,
        found={
            "blueprint": given.blueprint(),
            "credential": given.credential(),
            "token": given.secret(),
        },
    )
    third = given.answer(
        resources=record, found=given.required(token=given.secret(), substrate=None)
    )

    assert set(first.requirements) == {"blueprint", "credential", "token"}
    assert set(second.requirements) == {"blueprint", "credential", "token", "cloud", "substrate"}
    assert third.requirements == second.requirements
