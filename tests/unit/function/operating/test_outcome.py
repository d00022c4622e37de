"""What a call became, in words of closed sets."""

from __future__ import annotations

from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from function import fn
from function.contract.conditions import Reason
from function.operating import outcome
from function.operating.outcome import Result, Severity
from tests.unit.function import given


def response(**fields: Any) -> fnv1.RunFunctionResponse:
    return json_format.ParseDict(fields, fnv1.RunFunctionResponse())


def condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": f"STATUS_CONDITION_{status}", "reason": reason}


ADMITTED = condition("Admitted", "TRUE", "Admitted")
INJECTED = condition("BootstrapInjected", "TRUE", "Injected")
FATAL = {"severity": "SEVERITY_FATAL", "message": "no"}
WARNING = {"severity": "SEVERITY_WARNING", "message": "hm"}
READY = {"composite": {"ready": "READY_TRUE"}}
HELD = {"composite": {"ready": "READY_FALSE"}}


@pytest.mark.parametrize(
    ("answer", "result", "reason", "severity"),
    [
        pytest.param({}, Result.READY, "", Severity.NORMAL, id="what nothing holds is ready"),
        pytest.param({"desired": HELD}, Result.WAITING, "", Severity.NORMAL, id="held by others"),
        pytest.param({"desired": READY}, Result.READY, "", Severity.NORMAL, id="ready"),
        pytest.param(
            {"desired": READY, "results": [WARNING]},
            Result.READY,
            "",
            Severity.WARNING,
            id="a warning does not change what became of it",
        ),
        pytest.param(
            {"desired": READY, "results": [WARNING, FATAL]},
            Result.FATAL,
            "",
            Severity.FATAL,
            id="nothing of a fatal answer counts",
        ),
        pytest.param(
            {"desired": HELD, "conditions": [condition("Admitted", "FALSE", "InvalidParameters")]},
            Result.REFUSED,
            "InvalidParameters",
            Severity.NORMAL,
            id="refused",
        ),
        pytest.param(
            {
                "desired": HELD,
                "conditions": [condition("Admitted", "UNKNOWN", "WaitingForReconciler")],
            },
            Result.WAITING,
            "WaitingForReconciler",
            Severity.NORMAL,
            id="not decided yet is no refusal",
        ),
        pytest.param(
            {
                "desired": HELD,
                "conditions": [
                    condition("NodeRegistered", "UNKNOWN", "WaitingForRegistration"),
                    ADMITTED,
                    condition("BootstrapInjected", "FALSE", "WaitingForToken"),
                ],
            },
            Result.WAITING,
            "WaitingForToken",
            Severity.NORMAL,
            id="it waits at the earliest, whatever the order of conditions",
        ),
        pytest.param(
            {
                "desired": HELD,
                "conditions": [
                    ADMITTED,
                    INJECTED,
                    condition("ProvisioningFailed", "TRUE", "Failed"),
                ],
            },
            Result.FAILED,
            "Failed",
            Severity.NORMAL,
            id="failed",
        ),
        pytest.param(
            {
                "desired": HELD,
                "conditions": [condition("ProvisioningFailed", "TRUE", "QuotaExceeded")],
            },
            Result.FAILED,
            "other",
            Severity.NORMAL,
            id="a provider's own reason is not a label",
        ),
    ],
)
def test_an_answer_is_told_in_our_words(
    answer: dict[str, Any], result: Result, reason: str, severity: Severity
) -> None:
    became = outcome.read(given.request(), response(**answer))

    assert became == outcome.CallOutcome(
        input_kind="Declare", result=result, reason=reason, severity=severity
    )


@pytest.mark.parametrize("step", [{}, {"kind": "Dance"}, {"kind": 1}, {"kind": {"a": "Declare"}}])
def test_an_input_of_another_kind_is_other(step: dict[str, Any]) -> None:
    assert outcome.input_kind(given.request(input=step)) == "other"


def test_reading_leaves_the_messages_as_they_were() -> None:
    request, answer = fnv1.RunFunctionRequest(), fnv1.RunFunctionResponse()

    outcome.read(request, answer)
    outcome.identity(request)

    assert request == fnv1.RunFunctionRequest()
    assert answer == fnv1.RunFunctionResponse()


def test_an_identity_shows_whose_call_it_was() -> None:
    assert outcome.identity(given.request()) == outcome.CallIdentity(
        tag="0123456789ab",
        api_version="provisioning.plexsphere.com/v1alpha1",
        kind="ProvisionedResource",
        name="web-1",
    )


@pytest.mark.parametrize("name", ["", "a\nb", "a b", "x" * 254, "\x1b[31m", "naïve", 7, {"a": 1}])
def test_what_does_not_look_like_a_name_is_not_shown(name: object) -> None:
    declared = given.xr()
    declared["metadata"]["name"] = name

    assert outcome.identity(given.request(declared)).name == "other"


def test_every_input_that_is_served_has_its_name() -> None:
    for kind in fn._INPUTS:
        assert outcome.input_kind(given.request(input={"kind": kind})) == kind


def test_every_reason_of_ours_is_one() -> None:
    for reason in Reason:
        answer = response(desired=HELD, conditions=[condition("Admitted", "FALSE", reason)])

        assert outcome.read(given.request(), answer).reason == reason
