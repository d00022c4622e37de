"""The DeploymentRuntimeConfig against the schema that Crossplane installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dev import binaries
from function.main import METRICS_ADDRESS
from function.operating import server

ROOT = Path(__file__).parents[3]
FILE = ROOT / "deploy" / "function" / "runtime-config.yaml"
METRICS_PORT = "metrics"
"""What Crossplane calls port 8080 of a package's container; probes name it."""

pytestmark = pytest.mark.integration

Object = dict[str, Any]


@pytest.fixture(scope="module")
def config() -> Object:
    return dict(yaml.safe_load(FILE.read_text()))


@pytest.fixture(scope="module")
def schema() -> Object:
    folder = binaries.core_manifests(report=print).crds
    crd = yaml.safe_load((folder / "pkg.crossplane.io_deploymentruntimeconfigs.yaml").read_text())
    (version,) = (each for each in crd["spec"]["versions"] if each["name"] == "v1beta1")
    return dict(_closed(version["schema"]["openAPIV3Schema"]))


def _closed(node: Any) -> Any:
    """The schema with unknown fields refused, as `kubectl --validate=strict` does."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: _closed(value) for key, value in node.items()}
    # An integer or a text: Kubernetes' own extension, under a type that no JSON schema knows.
    if made.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
    if "properties" in made and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def _container(config: Object) -> Object:
    (container,) = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]["containers"]
    return dict(container)


def test_it_fits_crossplanes_schema(config: Object, schema: Object) -> None:
    # The API server adds these to every object; the schema lists them without fields.
    body = {key: value for key, value in config.items() if key != "metadata"}

    jsonschema.Draft4Validator(schema).validate(body)


def test_a_misspelt_field_would_not(config: Object, schema: Object) -> None:
    body = {**config, "spec": {"deploymentTemplate": {"spec": {"replica": 2}}}}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(schema).validate(body)


def test_it_names_the_container_that_crossplane_runs(config: Object) -> None:
    assert _container(config)["name"] == "package-runtime"


def test_probes_ask_the_listener_of_metrics(config: Object) -> None:
    container = _container(config)

    paths = {name: container[name]["httpGet"]["path"] for name in container if "Probe" in name}
    assert paths == {
        "startupProbe": "/readyz",
        "readinessProbe": "/readyz",
        "livenessProbe": "/healthz",
    }
    assert {container[name]["httpGet"]["port"] for name in paths} == {METRICS_PORT}
    assert METRICS_ADDRESS.endswith(":8080")


def test_the_pause_and_the_drain_fit_into_the_time_a_pod_gets(config: Object) -> None:
    pause = _container(config)["lifecycle"]["preStop"]["sleep"]["seconds"]
    pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]

    assert pause + server.GRACE_S < pod["terminationGracePeriodSeconds"]


def test_it_runs_as_crossplanes_user_without_rights(config: Object) -> None:
    pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
    context = _container(config)["securityContext"]

    assert (context["runAsUser"], pod["securityContext"]["runAsUser"]) == (2000, 2000)
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
