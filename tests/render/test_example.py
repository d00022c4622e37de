"""The example as a pull request sees it: from the manifest down to the machine."""

from __future__ import annotations

import pytest

from function.contract import names
from tests.render.conftest import (
    COMPOSITION,
    FUNCTIONS,
    ROOT,
    XRDS,
    Crossplane,
    Object,
    Rendered,
    every,
    loaded,
)

pytestmark = pytest.mark.render

EXAMPLE = ROOT / "example"
BLUEPRINT = EXAMPLE / "blueprints" / "generic-vm"
PREVIEW = {names.CONTEXT_PREVIEW: True}
SCHEMAS = (XRDS, ROOT / "deploy" / "crds", BLUEPRINT, ROOT / "dev" / "cloud" / "crd.yaml")


def web(**parameters: object) -> Object:
    made = loaded(EXAMPLE / "shop" / "web-1.yaml")
    made["spec"]["parameters"].update(parameters)
    return made


def platform() -> list[Object]:
    files = sorted((EXAMPLE / "platform").glob("*.yaml"))
    return [body for path in files for body in every(path)]


def preview(crossplane: Crossplane, xr: Object) -> Rendered:
    shown = crossplane.render(xr, required=platform(), context=PREVIEW)
    assert shown.status == 0, shown.errors
    return shown


def test_the_example_renders_to_valid_objects(crossplane: Crossplane) -> None:
    shown = preview(crossplane, web())

    assert set(shown.objects) == {"ProvisionedResource", "ProvisioningRecord", "XGenericVM"}
    status, told = crossplane.validate(list(shown.objects.values()), *SCHEMAS)
    assert status == 0, told


def test_the_machine_gets_the_document_as_it_was_rendered(with_pythonic: Crossplane) -> None:
    substrate = preview(with_pythonic, web()).objects["XGenericVM"]

    below = with_pythonic.render(substrate, composition=BLUEPRINT / "composition.yaml")

    assert below.status == 0, below.errors
    machine = below.objects["Machine"]
    assert machine["metadata"]["name"] == substrate["metadata"]["name"]
    wanted = machine["spec"]["forProvider"]
    assert wanted["userData"] == substrate["spec"]["userData"]
    assert wanted["userData"].startswith("#cloud-config\n")
    assert wanted["tags"] == {"platform_env": "prod", "team": "checkout"}
    assert wanted["region"] == "nbg1"
    status, told = with_pythonic.validate(list(below.objects.values()), *SCHEMAS)
    assert status == 0, told


def test_a_wrong_parameter_in_the_example_is_shown_refused(crossplane: Crossplane) -> None:
    shown = preview(crossplane, web(diskSizeGb="forty"))

    assert set(shown.objects) == {"ProvisionedResource"}
    admitted = shown.conditions["Admitted"]
    assert (admitted["status"], admitted["reason"]) == ("False", "InvalidParameters")
    assert admitted["message"] == "spec.parameters.diskSizeGb: must be an integer"


def test_the_examples_functions_are_those_its_compositions_name() -> None:
    compositions = [loaded(path) for path in (COMPOSITION, BLUEPRINT / "composition.yaml")]

    used = {
        step["functionRef"]["name"] for each in compositions for step in each["spec"]["pipeline"]
    }

    assert {each["metadata"]["name"] for each in every(FUNCTIONS)} == used
