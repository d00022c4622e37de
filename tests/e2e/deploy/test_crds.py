"""Our definitions on a real API server: what it takes, and what it refuses and why."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from dev.crds.kinds import KINDS, Kind
from function.contract import names
from tests.e2e.deploy.holding import CRDS
from tests.e2e.deploy.identity import RECONCILER, Answer, Caller
from tests.e2e.deploy.manifests import ABSENT, EXAMPLES, RECORD_STATUS, changed, example, holds
from tests.e2e.deploy.place import Place

pytestmark = pytest.mark.e2e

BY_NAME = {kind.name: kind for kind in KINDS}

OTHER_ID = "0197b1a2-7c3d-7e4f-8a5b-000000000000"
OWN_ID = "0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"


class Made:
    """One example in the cluster, under a name of its own."""

    def __init__(self, place: Place, kind: str) -> None:
        self._place = place
        self.item = example(kind, f"probe-{uuid4().hex[:12]}")
        self._root = root(place, kind)
        self.path = f"{self._root}/{self.item['metadata']['name']}"

    def create(self) -> Answer:
        return self._place.admin.create(self._root, self.item)

    def dry_run(self, path: str, value: object) -> Answer:
        """Ask what a change of one field would bring."""
        body = changed(self._place.admin.get(self.path).body, path, value)
        return self._place.admin.request("PUT", f"{self.path}?dryRun=All", body)

    def remove(self) -> None:
        self._place.admin.as_user(RECONCILER, "system:masters").patch(
            self.path, {"metadata": {"finalizers": None}}
        )
        self._place.admin.delete(self.path)


def root(place: Place, kind: str) -> str:
    known = BY_NAME[kind]
    if known.scope == "Namespaced":
        return f"/apis/{names.API_VERSION}/namespaces/{place.name}/{known.plural}"
    return f"/apis/{names.API_VERSION}/{known.plural}"


def offered(place: Place, item: dict[str, Any]) -> Answer:
    """Ask whether an object would be taken."""
    return place.admin.create(f"{root(place, item['kind'])}?dryRun=All", item)


def said(answer: Answer, *words: str) -> bool:
    return answer.status == 422 and all(word in answer.message for word in words)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_definition_is_established_and_structural(admin: Caller, kind: Kind) -> None:
    body = admin.get(f"{CRDS}/{kind.plural}.{names.GROUP}").body

    conditions = {each["type"]: each["status"] for each in body["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert body["metadata"]["labels"][names.LABEL_HOLD] == "true"


@pytest.mark.parametrize("kind", list(EXAMPLES))
def test_example_of_the_kinds_page_is_taken_whole(place: Place, kind: str) -> None:
    item = example(kind)

    answer = offered(place, item)

    assert answer.ok, answer.message
    assert holds(answer.body["spec"], item["spec"])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Domain", "spec.region"),
        ("Project", "spec.id"),
        ("Cloud", "spec.endpoint"),
        ("CloudCredential", "spec.secretStoreRef"),
        ("CloudCredential", "spec.projects"),
        ("BlueprintVersion", "spec.meshRole"),
        ("BlueprintVersion", "spec.xr.scope"),
        ("BlueprintVersion", "spec.providerConfig"),
        ("BlueprintVersion", "spec.parameters"),
        ("BlueprintVersion", "spec.constants"),
        ("BlueprintVersion", "spec.registration"),
        ("ProvisioningRecord", "spec.declaration.blueprint"),
        ("ProvisioningRecord", "spec.declaration.cloudCredential"),
        ("ProvisioningRecord", "spec.declaration.labels"),
        ("ProvisioningRecord", "spec.substrate"),
        ("ProvisioningRecord", "spec.observed"),
    ],
)
def test_optional_field_may_be_left_out(place: Place, kind: str, path: str) -> None:
    answer = offered(place, changed(example(kind), path, ABSENT))

    assert answer.ok, answer.message


@pytest.mark.parametrize(
    ("kind", "path", "value", "words"),
    [
        ("Domain", "spec.meshCIDR", ABSENT, ["spec.meshCIDR", "Required"]),
        ("Domain", "spec.meshCIDR", "100.64.0.0", ["spec.meshCIDR", "cidr"]),
        ("Domain", "spec.meshCIDR", "100.64.0.0/33", ["spec.meshCIDR", "cidr"]),
        ("Domain", "spec.meshCIDR", "100.64.1.0/16", ["spec.meshCIDR", "host bits"]),
        ("Domain", "spec.meshCIDR", "100.65.0.0/15", ["spec.meshCIDR", "host bits"]),
        ("Domain", "spec.meshCIDR", "10.0.0.1/31", ["spec.meshCIDR", "host bits"]),
        ("Domain", "spec.region", "EU Central", ["spec.region", "should match"]),
        ("Domain", "spec", ABSENT, ["spec", "Required"]),
        ("Project", "spec.id", "shop", ["spec.id", "should match"]),
        ("Project", "spec.id", OWN_ID.upper(), ["spec.id", "should match"]),
        ("Project", "spec.domainRef", ABSENT, ["spec.domainRef", "Required"]),
        ("Project", "spec.domainRef.name", "", ["spec.domainRef.name"]),
        ("Cloud", "spec.provider", "ibm", ["spec.provider", "Unsupported"]),
        ("Cloud", "spec.endpoint", "url", ["spec.endpoint", "must be of type object"]),
        ("CloudCredential", "spec.cloudRef", ABSENT, ["spec.cloudRef", "Required"]),
        ("CloudCredential", "spec.vault.path", "", ["spec.vault.path"]),
        ("CloudCredential", "spec.vault.mount", ABSENT, ["spec.vault.mount", "Required"]),
        ("CloudCredential", "spec.secretStoreRef.kind", "Vault", ["secretStoreRef.kind"]),
        ("CloudCredential", "spec.projects", ["shop", "shop"], ["spec.projects[1]", "Duplicate"]),
        ("CloudCredential", "spec.projects", ["Shop!"], ["spec.projects[0]", "should match"]),
        ("BlueprintVersion", "spec.slug", "Generic VM", ["spec.slug", "should match"]),
        ("BlueprintVersion", "spec.version", "1.0", ["spec.version", "should match"]),
        ("BlueprintVersion", "spec.injectionStrategy", "ssh", ["spec.injectionStrategy"]),
        ("BlueprintVersion", "spec.meshRole", "leaf", ["spec.meshRole", "Unsupported"]),
        ("BlueprintVersion", "spec.providerKinds", [], ["spec.providerKinds"]),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"kind": "ClusterProviderConfig", "apiVersion": "aws.m.upbound.io/v1beta1"},
            ["spec.providerConfig", "which the broker creates"],
        ),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"secretKey": "kubeconfig"},
            ["spec.providerConfig", "secretKey needs an apiVersion"],
        ),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"apiVersion": "v1beta1"},
            ["spec.providerConfig.apiVersion", "API group"],
        ),
        ("BlueprintVersion", "spec.providerKinds", ["aws", "aws"], ["providerKinds[1]"]),
        ("BlueprintVersion", "spec.xr.scope", "Cluster", ["spec.xr.scope", "is refused"]),
        ("BlueprintVersion", "spec.xr.kind", "vm", ["spec.xr.kind", "should match"]),
        ("BlueprintVersion", "spec.registration", {"policy": "Retry"}, ["policy", "Unsupported"]),
        ("BlueprintVersion", "spec.registration", {"timeout": "59s"}, ["timeout", "1m and 24h"]),
        ("BlueprintVersion", "spec.registration", {"timeout": "24h1s"}, ["timeout", "1m and 24h"]),
        ("BlueprintVersion", "spec.provisioningTimeout", "59s", ["1m and 24h"]),
        ("BlueprintVersion", "spec.provisioningTimeout", "half an hour", ["should match"]),
        (
            *("BlueprintVersion", "spec.terminalConditions"),
            *([{"type": "Broken", "status": "Maybe"}], ["terminalConditions[0].status"]),
        ),
        ("BlueprintVersion", "spec.registration", {"timeout": "1d"}, ["timeout", "should match"]),
        ("BlueprintVersion", "spec.registration", {"attempts": 11}, ["attempts", "10"]),
        ("BlueprintVersion", "spec.providerConfig.fieldPath", "spec.x", ["exclude each other"]),
        ("BlueprintVersion", "spec.providerConfig", {"fieldPath": "status.x"}, ["fieldPath"]),
        ("BlueprintVersion", "spec.providerConfig", {"fieldPath": "spec"}, ["fieldPath"]),
        ("BlueprintVersion", "spec.providerConfig", {"fieldPath": "spec.x[0]"}, ["fieldPath"]),
        ("BlueprintVersion", "spec.providerConfig", {"fieldPath": "spec.0x"}, ["fieldPath"]),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"fieldPath": "spec.userData"},
            ["must not be a field"],
        ),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"fieldPath": "spec.parameters.x"},
            ["must not be a field"],
        ),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"fieldPath": "spec.cloudTags.x"},
            ["must not be a field"],
        ),
        (
            "BlueprintVersion",
            "spec.providerConfig",
            {"fieldPath": "spec.crossplane.x"},
            ["must not be a field"],
        ),
        ("BlueprintVersion", "spec.parameters.1.name", "region", ["parameters[1]", "Duplicate"]),
        ("BlueprintVersion", "spec.parameters.0.name", "helmValues", ["[0].name", "reserved"]),
        ("BlueprintVersion", "spec.parameters.0.name", "providerSecret", ["[0].name", "reserved"]),
        ("BlueprintVersion", "spec.parameters.0.type", "float", ["spec.parameters[0].type"]),
        ("BlueprintVersion", "spec.parameters.0.default", "x", ["spec.parameters[0].required"]),
        ("BlueprintVersion", "spec.parameters.1.default", 3, ["spec.parameters[1].default"]),
        ("BlueprintVersion", "spec.parameters.1.default", True, ["spec.parameters[1].default"]),
        ("BlueprintVersion", "spec.parameters.1.default", {}, ["spec.parameters[1].default"]),
        ("BlueprintVersion", "spec.parameters.1.default", ["x"], ["spec.parameters[1].default"]),
        ("BlueprintVersion", "spec.parameters.2.default", "40", ["spec.parameters[2].default"]),
        ("BlueprintVersion", "spec.parameters.2.default", 1.5, ["spec.parameters[2].default"]),
        ("BlueprintVersion", "spec.parameters.2.default", 2**53 + 1, ["parameters[2].default"]),
        ("BlueprintVersion", "spec.parameters.2.default", False, ["spec.parameters[2].default"]),
        ("BlueprintVersion", "spec.parameters.3.default", "no", ["spec.parameters[3].default"]),
        ("BlueprintVersion", "spec.parameters.3.default", 0, ["spec.parameters[3].default"]),
        ("BlueprintVersion", "spec.parameters.2.enum", [10, "x"], ["parameters[2].enum[1]"]),
        ("BlueprintVersion", "spec.parameters.2.enum", [1.5], ["parameters[2].enum[0]"]),
        ("BlueprintVersion", "spec.parameters.2.enum", [], ["parameters[2].enum"]),
        ("BlueprintVersion", "spec.parameters.3.enum", [True], ["parameters[3].enum"]),
        ("BlueprintVersion", "spec.parameters.4.enum", [1], ["parameters[4].enum[0]"]),
        ("BlueprintVersion", "spec.parameters.2.pattern", "^a$", ["[2]", "for the type string"]),
        ("BlueprintVersion", "spec.parameters.2.minLength", 1, ["[2]", "for the type string"]),
        ("BlueprintVersion", "spec.parameters.4.minimum", 1, ["[4]", "for the type integer"]),
        ("BlueprintVersion", "spec.parameters.3.maximum", 1, ["[3]", "for the type integer"]),
        ("BlueprintVersion", "spec.parameters.2.minimum", 2001, ["minimum must not exceed"]),
        ("BlueprintVersion", "spec.parameters.5.minLength", 5, ["minLength must not exceed"]),
        ("BlueprintVersion", "spec.parameters.5.maxLength", 513, ["[5]", "at most 512"]),
        ("BlueprintVersion", "spec.parameters.5.maxLength", 4097, ["[5].maxLength", "4096"]),
        ("BlueprintVersion", "spec.parameters.5.pattern", "[a-z]+", ["[5].pattern", "match"]),
        ("BlueprintVersion", "spec.parameters.5.pattern", "^[a-z", ["[5].pattern", "match"]),
        ("BlueprintVersion", "spec.parameters.5.pattern", "^(a$", ["[5].pattern", "missing"]),
        ("BlueprintVersion", "spec.parameters.5.pattern", "^(?=a)a$", ["[5].pattern", "literals"]),
        ("BlueprintVersion", "spec.parameters.5.pattern", r"^\d$", ["[5].pattern", "literals"]),
        ("BlueprintVersion", "spec.parameters.5.pattern", f"^{'a' * 255}$", ["[5].pattern"]),
        ("BlueprintVersion", "spec.constants.0.name", "helmValues", ["[0].name", "reserved"]),
        ("BlueprintVersion", "spec.constants.0.name", "region", ["constants", "a parameter has"]),
        ("BlueprintVersion", "spec.constants.0.value", {}, ["spec.constants[0].value"]),
        ("BlueprintVersion", "spec.constants.0.value", ["x"], ["spec.constants[0].value"]),
        ("BlueprintVersion", "spec.constants.0.value", 1.5, ["spec.constants[0].value"]),
        ("BlueprintVersion", "spec.constants.0.value", ABSENT, ["spec.constants[0].value"]),
        (
            "BlueprintVersion",
            "spec.parameters",
            [{"name": f"p{at}", "type": "string"} for at in range(64)],
            ["spec.constants", "at most 64 together"],
        ),
        ("ProvisioningRecord", "spec.declaration.provider", "x", ["spec.declaration.provider"]),
        ("ProvisioningRecord", "spec.declaration.xr.uid", ABSENT, ["declaration.xr.uid"]),
        ("ProvisioningRecord", "spec.declaration.retry", -1, ["spec.declaration.retry"]),
        ("ProvisioningRecord", "spec.declaration.labels.a", "x" * 257, ["declaration.labels"]),
        ("ProvisioningRecord", "spec.observed.exists", "yes", ["spec.observed.exists"]),
        ("ProvisioningRecord", "spec.declaration", ABSENT, ["spec.declaration", "Required"]),
    ],
)
def test_bad_field_is_refused_by_name(
    place: Place, kind: str, path: str, value: object, words: list[str]
) -> None:
    answer = offered(place, changed(example(kind), path, value))

    assert said(answer, *words), answer.message


@pytest.mark.parametrize("path", ["spec.x", "spec.providerConfigRef.name", "spec.userDataRef"])
def test_blueprint_says_where_its_xr_takes_the_name(place: Place, path: str) -> None:
    item = changed(example("BlueprintVersion"), "spec.providerConfig", {"fieldPath": path})

    answer = offered(place, item)

    assert answer.ok, answer.message


@pytest.mark.parametrize(
    ("kind", "path", "value", "word"),
    [
        ("Domain", "spec.meshCIDR", "100.65.0.0/16", "spec.meshCIDR"),
        ("Project", "spec.id", OTHER_ID, "id: is immutable"),
        ("Project", "spec.id", ABSENT, "id: is immutable"),
        ("Project", "spec.domainRef.name", "other", "spec.domainRef"),
        ("Cloud", "spec.provider", "aws", "spec.provider"),
        ("CloudCredential", "spec.cloudRef.name", "other", "spec.cloudRef"),
        ("BlueprintVersion", "spec.injectionStrategy", "helm-values", "spec.injectionStrategy"),
        ("BlueprintVersion", "spec.meshRole", "standalone", "spec.meshRole"),
        ("BlueprintVersion", "spec.xr.kind", "XOther", "spec.xr"),
        (
            *("BlueprintVersion", "spec.terminalConditions"),
            *([{"type": "Broken", "status": "True"}], "terminalConditions"),
        ),
        ("BlueprintVersion", "spec.slug", "other", "spec.slug"),
        ("BlueprintVersion", "spec.version", "v2", "spec.version"),
        ("BlueprintVersion", "spec.parameters.1.default", "standard-8", "spec.parameters"),
        ("BlueprintVersion", "spec.parameters.4.enum", ["small"], "spec.parameters"),
        ("BlueprintVersion", "spec.parameters.0.mutable", True, "spec.parameters"),
        ("BlueprintVersion", "spec.parameters", [], "spec.parameters"),
        ("BlueprintVersion", "spec.parameters", ABSENT, "spec.parameters"),
        ("BlueprintVersion", "spec.constants.0.value", "kube-system", "spec.constants"),
        ("BlueprintVersion", "spec.constants", ABSENT, "spec.constants"),
        ("BlueprintVersion", "spec.registration.policy", "Recreate", "spec.registration"),
        ("BlueprintVersion", "spec.registration", ABSENT, "spec.registration"),
        ("ProvisioningRecord", "spec.declaration.resource", "other", "declaration.resource"),
        ("ProvisioningRecord", "spec.declaration.xr.name", "web-2", "declaration.xr.name"),
        ("ProvisioningRecord", "spec.declaration.xr.kind", "Other", "declaration.xr.kind"),
        ("ProvisioningRecord", "spec.declaration.xr.apiVersion", "x.org/v1", "xr.apiVersion"),
        ("ProvisioningRecord", "spec.declaration.blueprint.name", "other", "blueprint.name"),
        ("ProvisioningRecord", "spec.declaration.blueprint", ABSENT, "blueprint: is immutable"),
    ],
)
def test_immutable_field_is_not_changed(
    place: Place, kind: str, path: str, value: object, word: str
) -> None:
    made = Made(place, kind)
    assert made.create().ok

    answer = made.dry_run(path, value)

    made.remove()
    assert said(answer, word, "immutable"), answer.message


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Domain", "spec.region", "us-east"),
        ("Cloud", "spec.endpoint", {"region": "us"}),
        ("CloudCredential", "spec.projects", ["shop", "desk"]),
        ("BlueprintVersion", "spec.providerKinds", ["aws"]),
        ("BlueprintVersion", "spec.provisioningTimeout", "2h"),
        ("BlueprintVersion", "spec.provisioningTimeout", ABSENT),
        ("ProvisioningRecord", "spec.declaration.xr.uid", "0197b1a2-0000-7000-8000-000000000000"),
        ("ProvisioningRecord", "spec.declaration.xr.apiVersion", f"{names.GROUP}/v1beta1"),
        ("ProvisioningRecord", "spec.declaration.parameters.region", "fsn1"),
        ("ProvisioningRecord", "spec.declaration.retry", 0),
    ],
)
def test_other_field_is_changed(place: Place, kind: str, path: str, value: object) -> None:
    made = Made(place, kind)
    assert made.create().ok

    answer = made.dry_run(path, value)

    made.remove()
    assert answer.ok, answer.message


def test_status_of_a_record_is_written_apart_from_its_spec(place: Place) -> None:
    made = Made(place, "ProvisioningRecord")
    assert made.create().ok

    answer = place.admin.patch(f"{made.path}/status", {"status": RECORD_STATUS, "spec": None})

    assert answer.ok, answer.message
    assert answer.body["status"] == RECORD_STATUS
    assert holds(answer.body["spec"], made.item["spec"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("phase", "Lost"),
        ("substrate", "Maybe"),
        ("bootstrap.state", "Stolen"),
        ("node.registeredAt", "yesterday"),
        ("conditions.0.status", "Perhaps"),
        ("conditions.0.reason", "with blanks"),
        ("conditions.0.lastTransitionTime", ABSENT),
        ("enrolment.plexdSHA256.amd64", "none"),
    ],
)
def test_bad_status_is_refused_by_name(place: Place, path: str, value: object) -> None:
    made = Made(place, "ProvisioningRecord")
    assert made.create().ok

    status = changed(RECORD_STATUS, path, value)
    answer = place.admin.patch(f"{made.path}/status", {"status": status})

    assert said(answer, f"status.{path.replace('.0.', '[0].')}"), answer.message


@pytest.mark.parametrize("given", [None, OWN_ID])
def test_project_keeps_the_id_that_was_minted(place: Place, given: str | None) -> None:
    made = Made(place, "Project")
    made.item = changed(made.item, "spec.id", given or ABSENT)
    assert made.create().ok
    assert place.admin.patch(f"{made.path}/status", {"status": {"id": OWN_ID}}).ok

    other = made.dry_run("spec.id", OTHER_ID)
    same = made.dry_run("spec.id", OWN_ID)
    moved = place.admin.patch(f"{made.path}/status?dryRun=All", {"status": {"id": OTHER_ID}})

    made.remove()
    assert said(other, "id: ")
    assert same.ok, same.message
    assert said(moved, "id: ")


def test_what_counts_as_failed_is_said_once_and_stays(place: Place) -> None:
    made = Made(place, "BlueprintVersion")
    assert made.create().ok
    taken = made.dry_run("spec.terminalConditions", ABSENT)
    made.remove()
    silent = Made(place, "BlueprintVersion")
    silent.item = changed(silent.item, "spec.terminalConditions", ABSENT)
    assert silent.create().ok
    added = silent.dry_run("spec.terminalConditions", [{"type": "Broken", "status": "True"}])
    silent.remove()

    assert said(taken, "terminalConditions", "cannot be taken away"), taken.message
    assert added.ok, added.message
