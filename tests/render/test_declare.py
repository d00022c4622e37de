"""Our Composition and function in Crossplane's own reconciler."""

from __future__ import annotations

import pytest

from function.contract import names
from tests.render.conftest import Crossplane, catalogue, composed
from tests.unit.function import given

pytestmark = pytest.mark.render

PREVIEW = {names.CONTEXT_PREVIEW: True}
CONSTANT = (
    "spec.parameters.namespace: is a constant of this blueprint; remove it from spec.parameters"
)


def test_a_preview_shows_record_and_substrate(crossplane: Crossplane) -> None:
    shown = crossplane.render(given.xr(), required=catalogue(), context=PREVIEW)

    assert shown.status == 0, shown.errors
    substrate = shown.objects["XGenericVM"]
    assert substrate["metadata"]["name"] == "pr-00000000-0000-7000-8000-000000000000"
    assert substrate["spec"]["parameters"]["diskSizeGb"] == 40
    assert "preview-token-not-a-secret" in substrate["spec"]["userData"]
    assert shown.objects["ProvisioningRecord"]["metadata"]["finalizers"] == [names.FINALIZER]
    assert shown.conditions["Admitted"]["reason"] == "Preview"
    assert shown.conditions["Ready"]["status"] == "False"


def test_a_preview_needs_only_the_blueprint(crossplane: Crossplane) -> None:
    shown = crossplane.render(given.xr(), required=[given.blueprint()], context=PREVIEW)

    assert shown.status == 0, shown.errors
    assert set(shown.objects) == {"ProvisionedResource", "ProvisioningRecord", "XGenericVM"}


def test_a_refused_parameter_is_a_condition_and_composes_nothing(crossplane: Crossplane) -> None:
    wrong = given.xr(parameters={"region": "nbg1", "colour": "red"})

    shown = crossplane.render(wrong, required=catalogue(), context=PREVIEW)

    assert shown.status == 0, shown.errors
    assert set(shown.objects) == {"ProvisionedResource"}
    admitted = shown.conditions["Admitted"]
    assert (admitted["status"], admitted["reason"]) == ("False", "InvalidParameters")
    assert admitted["message"] == "spec.parameters.colour: is not a parameter of this blueprint"
    assert shown.conditions["Ready"]["status"] == "False"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"region": "NBG1"}, "spec.parameters.region: must match ^[a-z]{3}[0-9]$"),
        ({"region": "nbg1", "size": "huge"}, "spec.parameters.size: must be one of small, large"),
        ({"region": "nbg1", "disk": 9}, "spec.parameters.disk: must be at least 10"),
        (
            {"region": "nbg1", "namespace": "kube-system"},
            CONSTANT,
        ),
    ],
)
def test_a_preview_holds_parameters_to_their_limits(
    crossplane: Crossplane, parameters: dict[str, object], message: str
) -> None:
    limited = given.blueprint(
        parameters=[
            {"name": "region", "type": "string", "required": True, "pattern": "^[a-z]{3}[0-9]$"},
            {"name": "size", "type": "string", "enum": ["small", "large"]},
            {"name": "disk", "type": "integer", "minimum": 10},
        ],
        constants=[{"name": "namespace", "value": "machines"}],
    )

    shown = crossplane.render(given.xr(parameters=parameters), required=[limited], context=PREVIEW)

    assert shown.status == 0, shown.errors
    assert set(shown.objects) == {"ProvisionedResource"}
    assert shown.conditions["Admitted"]["message"] == message


def test_an_unknown_blueprint_is_a_condition(crossplane: Crossplane) -> None:
    shown = crossplane.render(given.xr(), required=catalogue()[1:])

    assert shown.status == 0, shown.errors
    assert set(shown.objects) == {"ProvisionedResource"}
    assert shown.conditions["Admitted"]["reason"] == "BlueprintNotFound"


def test_without_a_reconciler_the_record_stands_alone(crossplane: Crossplane) -> None:
    shown = crossplane.render(given.xr(), required=catalogue())

    assert shown.status == 0, shown.errors
    assert set(shown.objects) == {"ProvisionedResource", "ProvisioningRecord"}
    assert shown.conditions["Admitted"]["reason"] == "WaitingForReconciler"


def test_an_accepted_record_and_its_token_give_birth(crossplane: Crossplane) -> None:
    record = composed("record", given.record(given.status()))

    shown = crossplane.render(
        given.xr(), required=[*catalogue(), given.secret()], observed=[record]
    )

    assert shown.status == 0, shown.errors
    substrate = shown.objects["XGenericVM"]
    assert substrate["metadata"]["name"] == given.XR_NAME
    assert substrate["metadata"]["labels"][names.LABEL_HOLD] == "true"
    assert given.TOKEN in substrate["spec"]["userData"]
    assert shown.conditions["BootstrapInjected"]["status"] == "True"
    status = shown.objects["ProvisionedResource"]["status"]
    assert status["xrName"] == given.XR_NAME


def test_a_registered_node_makes_the_xr_ready(crossplane: Crossplane) -> None:
    node = {"id": "n-1", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
    observed = [
        composed("record", given.record(given.status(phase="Ready", node=node))),
        composed("substrate", given.substrate(given.READY)),
    ]

    shown = crossplane.render(given.xr(), required=catalogue(), observed=observed)

    assert shown.status == 0, shown.errors
    assert shown.conditions["Ready"]["status"] == "True"
    assert shown.objects["XGenericVM"]["spec"]["userData"] == observed[1]["spec"]["userData"]


def test_an_orphan_is_adopted(crossplane: Crossplane) -> None:
    spent = {"generation": 1, "state": "Consumed"}
    record = composed("record", given.record(given.status(bootstrap=spent)))

    shown = crossplane.render(
        given.xr(), required=[*catalogue(), given.substrate(given.READY)], observed=[record]
    )

    assert shown.status == 0, shown.errors
    substrate = shown.objects["XGenericVM"]
    assert substrate["spec"]["userData"] == given.substrate()["spec"]["userData"]


def test_an_xr_applied_again_adopts_in_its_first_run(crossplane: Crossplane) -> None:
    spent = {"generation": 1, "state": "Consumed"}
    left = [given.record(given.status(bootstrap=spent)), given.substrate(given.READY)]

    shown = crossplane.render(given.xr(), required=[*catalogue(), *left])

    assert shown.status == 0, shown.errors
    assert shown.objects["ProvisioningRecord"]["spec"]["observed"]["exists"] is True
    assert shown.objects["XGenericVM"]["spec"]["userData"] == left[1]["spec"]["userData"]


def test_absent_drops_the_substrate(crossplane: Crossplane) -> None:
    observed = [
        composed("record", given.record(given.status(substrate="Absent"))),
        composed("substrate", given.substrate(given.READY)),
    ]

    shown = crossplane.render(given.xr(), required=catalogue(), observed=observed)

    assert shown.status == 0, shown.errors
    assert set(shown.objects) == {"ProvisionedResource", "ProvisioningRecord"}
