"""Where a blueprint's XR takes the ProviderConfig's name: the definition refuses what we do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dev.crds.kinds import BLUEPRINT
from dev.crds.manifest import custom_resource_definition
from tests.unit.function import given

CONFIG = {"kind": "ProviderConfig", "name": "hz-1"}


def taken_by_definition(path: str) -> bool:
    version = custom_resource_definition(BLUEPRINT)["spec"]["versions"][0]
    node: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    for step in ("spec", "providerConfig", "fieldPath"):
        node = node["properties"][step]
    (validation,) = node["x-kubernetes-validations"]
    reserved = re.fullmatch(r"!self\.matches\('(.+)'\)", validation["rule"])
    assert reserved is not None
    # The server's expressions are unanchored, as `search` is.
    return bool(re.search(node["pattern"], path)) and not re.search(reserved[1], path)


def taken_by_function(path: str) -> bool:
    found = given.required(token=given.secret(), substrate=None)
    found["blueprint"] = given.blueprint(providerConfig={"fieldPath": path})
    record = given.record(given.status(providerConfigRef=CONFIG))
    return given.answer(resources={"record": record}, found=found).substrate is not None


@pytest.mark.parametrize("path", ["spec.x", "spec.providerConfigRef.name", "spec.a-b_c.d0"])
def test_path_is_taken_by_both(path: str) -> None:
    assert taken_by_definition(path)
    assert taken_by_function(path)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "spec",
            "spec.",
            "spec..x",
            "spec.0",
            "spec.x[0]",
            "spec.-x",
            "status.x",
            "metadata.name",
        ),
        *("spec.parameters", "spec.userData", "spec.cloudTags", "spec.crossplane"),
        *("spec.parameters.x", "spec.userData.x", "spec.cloudTags.x", "spec.crossplane.x"),
    ],
)
def test_path_is_refused_by_both(path: str) -> None:
    assert not taken_by_definition(path)
    assert not taken_by_function(path)


@pytest.mark.parametrize("path", ["spec.userDataRef", "spec.parametersFrom.x"])
def test_only_whole_names_are_reserved(path: str) -> None:
    assert taken_by_definition(path)
    assert taken_by_function(path)
