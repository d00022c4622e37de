"""`xrd.yaml`: each broken rule is told by its field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.reconciler.domain.catalog import given

SCHEMA = "spec.versions[0].schema.openAPIV3Schema"


def without(*path: str) -> given.Object:
    made = given.definition()
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for key in path[:-1]:
        spec = spec[key]
    del spec[path[-1]]
    return made


def requiring(*path: str, names: list[str]) -> given.Object:
    made = given.definition()
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for key in path:
        spec = spec["properties"][key]
    spec["required"] = names
    return made


@pytest.mark.parametrize(
    ("spec", "finding"),
    [
        ({"group": "example.org"}, "spec.group: is not blueprints.plexsphere.com"),
        ({"scope": "Cluster"}, "spec.scope: must be Namespaced: a namespaced XR"),
        ({"scope": "LegacyCluster"}, "spec.scope: must be Namespaced: a namespaced XR"),
        ({"versions": []}, "spec.versions: has no served version"),
        ({"versions": "none"}, "spec.versions: has no served version"),
        ({"names": {"kind": "XSmallVM", "plural": "other"}}, "metadata.name: is not spec.names"),
        ({"names": {"plural": "xsmallvms"}}, "spec.names.kind: is missing"),
        (
            {"versions": [{"name": "v1alpha1", "served": True}]},
            f"{SCHEMA}: is missing",
        ),
    ],
)
def test_a_broken_field_is_named(spec: Any, finding: str) -> None:
    judgement = given.judged(defined=given.definition(**spec))

    assert judgement.manifest is None
    assert any(each.startswith(f"xrd.yaml: {finding}") for each in given.told(judgement))


@pytest.mark.parametrize(
    ("defined", "finding"),
    [
        (
            {**given.definition(), "apiVersion": "apiextensions.crossplane.io/v1"}
            | {"spec": {k: v for k, v in given.definition()["spec"].items() if k != "scope"}},
            "spec.scope: must be Namespaced: a namespaced XR",
        ),
        (without("properties", "cloudTags"), f"{SCHEMA}.properties.spec: must declare cloudTags"),
        (without("properties", "userData"), f"{SCHEMA}: does not declare spec.userData"),
        (
            requiring(names=["parameters", "zone"]),
            f"{SCHEMA}.properties.spec.required: names zone, which nothing sets",
        ),
        (
            requiring("parameters", names=["disk", "zone"]),
            f"{SCHEMA}.properties.spec.properties.parameters: requires zone",
        ),
        ({**given.definition(), "kind": "CustomResourceDefinition"}, "kind: is not"),
        ({**given.definition(), "apiVersion": "v1"}, "apiVersion: is not of group"),
    ],
)
def test_a_broken_definition_is_named(defined: given.Object, finding: str) -> None:
    judgement = given.judged(defined=defined)

    assert judgement.manifest is None
    assert any(each.startswith(f"xrd.yaml: {finding}") for each in given.told(judgement))


def test_a_served_version_counts_that_is_not_the_first_one_listed() -> None:
    defined = given.definition()
    (version,) = defined["spec"]["versions"]
    former = copy.deepcopy({**version, "name": "v1alpha0", "served": False})
    defined["spec"]["versions"] = [former, version]

    judgement = given.judged(defined=defined)

    assert judgement.manifest is not None
    assert judgement.manifest["spec"]["version"] == "v1alpha1"
