"""What keeps a substrate from being born, and where a ProviderConfig's name goes."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from function.contract.conditions import ConditionType
from function.model.call import Outcome, Ttl
from tests.unit.function import given

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
TAKES_A_NAME = given.blueprint(providerConfig={"fieldPath": "spec.providerConfigRef.name"})


def born(blueprint: dict[str, Any] | None = None, **status: Any) -> Outcome:
    found = given.required(token=given.secret(), substrate=None)
    if blueprint is not None:
        found["blueprint"] = blueprint
    return given.answer(resources={"record": given.record(given.status(**status))}, found=found)


def enrolment(**changes: Any) -> dict[str, Any]:
    knobs: dict[str, Any] = given.status()["enrolment"] | changes
    return {name: value for name, value in knobs.items() if value is not None}


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        (enrolment(baseURL=None), "enrolment.baseURL"),
        (enrolment(baseURL="  "), "enrolment.baseURL"),
        (enrolment(baseURL="ftp://x.example"), "enrolment.baseURL"),
        (enrolment(baseURL="/relative"), "enrolment.baseURL"),
        (enrolment(baseURL="https://x.example/'; reboot #"), "enrolment.baseURL"),
        (enrolment(plexdDownloadURL=None), "enrolment.plexdDownloadURL"),
        (enrolment(caBundle="-----BEGIN PRIVATE KEY-----"), "enrolment.caBundle"),
        (
            enrolment(plexdSHA256={}, plexdDownloadURL="http://x.example/plexd"),
            "enrolment.plexdSHA256",
        ),
    ],
)
def test_a_wrong_knob_withholds_the_substrate_and_names_the_field(
    knobs: dict[str, Any], field: str
) -> None:
    outcome = born(enrolment=knobs)

    injected = given.verdict(outcome, ConditionType.BOOTSTRAP_INJECTED)
    assert outcome.substrate is None
    assert outcome.record is not None
    assert outcome.ttl is Ttl.REFUSED
    assert (injected.status, injected.reason) == (False, "InvalidInput")
    assert injected.message.startswith(f"{field}: ")
    assert given.TOKEN not in injected.message


@pytest.mark.parametrize("provider", ["aws", "generic"])
def test_a_document_larger_than_the_cloud_takes_creates_nothing(provider: str) -> None:
    accepted = given.declaration(provider=provider)

    outcome = born(accepted=accepted, enrolment=enrolment(caBundle=CERTIFICATE * 200))

    injected = given.verdict(outcome, ConditionType.BOOTSTRAP_INJECTED)
    assert outcome.substrate is None
    assert (injected.status, injected.reason) == (False, "UserDataTooLarge")
    assert "accepts at most 16384" in injected.message


def test_a_larger_cloud_takes_the_same_document() -> None:
    accepted = given.declaration(provider="gcp")

    outcome = born(accepted=accepted, enrolment=enrolment(caBundle=CERTIFICATE * 200))

    assert outcome.substrate is not None


def test_helm_values_carry_token_url_and_image() -> None:
    accepted = given.declaration(injectionStrategy="helm-values")

    outcome = born(given.blueprint(injectionStrategy="helm-values"), accepted=accepted)

    assert outcome.substrate is not None
    spec = outcome.substrate.manifest["spec"]
    assert "userData" not in spec
    assert spec["parameters"]["helmValues"] == {
        "bootstrapToken": given.TOKEN,
        "apiUrl": "https://api.example.org",
        "plexdImage": "registry.example.org/plexd:v0.8.0",
    }
    assert spec["parameters"]["region"] == "nbg1"


@pytest.mark.parametrize("image", [None, "registry.example.org/plexd", "x/plexd:latest"])
def test_a_floating_image_is_never_deployed(image: str | None) -> None:
    accepted = given.declaration(injectionStrategy="helm-values")

    outcome = born(
        given.blueprint(injectionStrategy="helm-values"),
        accepted=accepted,
        enrolment=enrolment(plexdImage=image),
    )

    injected = given.verdict(outcome, ConditionType.BOOTSTRAP_INJECTED)
    assert outcome.substrate is None
    assert injected.message.startswith("enrolment.plexdImage: ")


def test_a_provider_secret_carries_the_token_alone() -> None:
    accepted = given.declaration(injectionStrategy="provider-secret")

    outcome = born(given.blueprint(injectionStrategy="provider-secret"), accepted=accepted)

    assert outcome.substrate is not None
    spec = outcome.substrate.manifest["spec"]
    assert spec["parameters"]["providerSecret"] == {"bootstrapToken": given.TOKEN}


def test_a_blueprint_that_takes_the_providerconfigs_name_gets_it() -> None:
    outcome = born(TAKES_A_NAME, providerConfigRef={"kind": "ProviderConfig", "name": "hz-1"})

    assert outcome.substrate is not None
    made = outcome.substrate.manifest
    assert made["spec"]["providerConfigRef"] == {"name": "hz-1"}
    path = made["metadata"]["annotations"][names.ANNOTATION_PROVIDER_CONFIG]
    assert path == "spec.providerConfigRef.name"


def test_a_substrate_is_not_born_under_the_wrong_providerconfig() -> None:
    outcome = born(TAKES_A_NAME)

    injected = given.verdict(outcome, ConditionType.BOOTSTRAP_INJECTED)
    assert outcome.substrate is None
    assert injected.reason == "WaitingForReconciler"


@pytest.mark.parametrize("path", ["spec.userData", "spec.crossplane.x", "metadata.name", "spec"])
def test_a_blueprint_may_not_point_the_name_at_our_fields(path: str) -> None:
    outcome = born(
        given.blueprint(providerConfig={"fieldPath": path}),
        providerConfigRef={"kind": "ProviderConfig", "name": "hz-1"},
    )

    injected = given.verdict(outcome, ConditionType.BOOTSTRAP_INJECTED)
    assert outcome.substrate is None
    assert injected.reason == "UnsupportedBlueprint"


def test_the_providerconfigs_name_stays_while_the_blueprint_is_away() -> None:
    observed = given.substrate(providerConfigRef={"name": "hz-1", "kind": "ProviderConfig"})
    path = "spec.providerConfigRef.name"
    observed["metadata"]["annotations"][names.ANNOTATION_PROVIDER_CONFIG] = path

    outcome = given.answer(
        resources={"record": given.record(given.status()), "substrate": observed},
        found=given.required(blueprint=None),
    )

    assert outcome.substrate is not None
    assert outcome.substrate.manifest["spec"]["providerConfigRef"] == {"name": "hz-1"}


def test_a_long_name_is_hashed_into_the_records_label() -> None:
    declared = given.xr()
    declared["metadata"]["name"] = "w" * 200

    outcome = given.answer(declared)

    assert outcome.record is not None
    head = outcome.record.manifest["metadata"]
    assert len(head["name"]) <= 63
    assert len(head["labels"][names.LABEL_XR]) <= 63


def test_a_blueprint_gone_wrong_leaves_the_substrate_and_says_so() -> None:
    outcome = given.answer(
        resources={"record": given.record(given.status()), "substrate": given.substrate()},
        found=given.required(blueprint=given.blueprint(providerConfig={"fieldPath": "spec"})),
    )

    assert outcome.substrate is not None
    assert outcome.substrate.manifest["spec"]["userData"] == given.substrate()["spec"]["userData"]
    admitted = given.verdict(outcome, ConditionType.ADMITTED)
    assert (admitted.status, admitted.reason) == (False, "UnsupportedBlueprint")
    assert admitted.message.startswith("BlueprintVersion.spec.providerConfig.fieldPath: ")
    assert given.verdict(outcome, ConditionType.BOOTSTRAP_INJECTED).status is True
    assert outcome.ttl is Ttl.REFUSED
