"""The published blueprints, from the manifest in Git down to the managed resources."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev import schemas
from function.render.documents import plexd_pod
from tests.render.conftest import COMPOSITION, ROOT, Crossplane, Object, every, loaded
from tests.render.published import (
    COMPOSITIONS,
    EXAMPLES,
    PATCHES,
    READY,
    TRANSFORMER,
    XRDS,
    Blueprints,
    functions,
    group,
)

pytestmark = pytest.mark.render

CONFIGURATION = ROOT / "crossplane-blueprints.yaml"
SLUGS = sorted(path.stem for path in XRDS.glob("*.yaml"))

TOKEN = "preview-token-not-a-secret"

PROVIDER_CRDS = "PROVIDER_CRDS"
"""Names a folder with the CRDs of providers that no Go module brings."""

KUBERNETES = ("github.com/crossplane-contrib/provider-kubernetes", "v1.2.1")
HELM = ("github.com/crossplane-contrib/provider-helm", "v1.3.0")
AWS = ("github.com/upbound/provider-aws/v2", "v2.5.0")
MODULES = {
    "aws-ec2-instance": (*AWS, "ec2.aws.m.upbound.io_instances"),
    "generic-vm": (*KUBERNETES, "kubernetes.m.crossplane.io_objects"),
    "kubernetes-daemonset": (*KUBERNETES, "kubernetes.m.crossplane.io_objects"),
    "kubernetes-helm": (*HELM, "helm.m.crossplane.io_releases"),
}


@pytest.fixture(scope="module")
def blueprints(
    programs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Blueprints]:
    with functions() as targets:
        yield Blueprints(
            cli=programs["crossplane-cli"],
            core=programs["crossplane"],
            folder=tmp_path_factory.mktemp("blueprints"),
            targets=targets,
        )


def without_bootstrap(xr: Object) -> Object:
    spec: Object = xr["spec"]
    spec.pop("userData", None)
    spec.get("parameters", {}).pop("helmValues", None)
    return xr


def _schemas(slug: str, folder: Path) -> Path:
    """A folder with what the blueprint's objects must agree with."""
    target = folder / "schemas"
    shutil.copytree(XRDS, target)
    if slug in MODULES:
        module, version, name = MODULES[slug]
        content = schemas.module_file(module, version, f"package/crds/{name}.yaml")
        (target / f"{name}.yaml").write_bytes(content)
    elif os.environ.get(PROVIDER_CRDS):
        shutil.copytree(os.environ[PROVIDER_CRDS], target, dirs_exist_ok=True)
    else:
        pytest.skip(f"no Go module brings the CRDs of {slug}'s provider; {PROVIDER_CRDS} may")
    return target


@pytest.mark.parametrize("slug", SLUGS)
def test_a_blueprint_composes_what_its_provider_takes(
    blueprints: Blueprints, slug: str, tmp_path: Path
) -> None:
    made = blueprints.below(slug, blueprints.substrate(slug))

    assert made.resources
    objects = [made.xr, *made.resources.values()]
    status, told = blueprints.validate(objects, _schemas(slug, tmp_path))
    assert status == 0, told


@pytest.mark.parametrize("slug", SLUGS)
def test_a_managed_resource_refers_to_the_credentials_provider_config(
    blueprints: Blueprints, slug: str
) -> None:
    xr = blueprints.substrate(slug)

    made = blueprints.below(slug, xr)

    references = [
        each["spec"]["providerConfigRef"]
        for each in made.resources.values()
        if each["apiVersion"] != "v1"
    ]
    assert references
    wanted = {"kind": "ProviderConfig", "name": xr["spec"]["providerConfigRef"]["name"]}
    assert all(reference == wanted for reference in references)


@pytest.mark.parametrize(
    ("slug", "tags"),
    [
        ("openstack-instance", "metadata"),
        ("hetzner-server", "labels"),
        ("aws-ec2-instance", "tags"),
    ],
)
def test_a_server_gets_document_and_tags_as_they_were_rendered(
    blueprints: Blueprints, slug: str, tags: str
) -> None:
    xr = blueprints.substrate(slug)

    made = blueprints.below(slug, xr)

    server = made.resources["server"]
    assert server["metadata"]["name"] == xr["metadata"]["name"]
    wanted = server["spec"]["forProvider"]
    assert wanted["userData"] == xr["spec"]["userData"]
    assert wanted["userData"].startswith("#cloud-config\n")
    assert wanted[tags] == xr["spec"]["cloudTags"] != {}


@pytest.mark.parametrize(
    ("slug", "harmless"),
    [
        ("openstack-instance", set()),
        ("hetzner-server", set()),
        ("aws-ec2-instance", set()),
        ("generic-vm", {"user-data"}),
        ("kubernetes-daemonset", {"namespace", "token"}),
        ("kubernetes-helm", set()),
    ],
)
def test_nothing_starts_without_its_bootstrap(
    blueprints: Blueprints, slug: str, harmless: set[str]
) -> None:
    xr = without_bootstrap(blueprints.substrate(slug))

    made = blueprints.below(slug, xr)

    assert set(made.resources) == harmless


@pytest.mark.parametrize("slug", ["generic-vm", "kubernetes-daemonset", "kubernetes-helm"])
def test_the_token_stands_in_one_secret_where_the_provider_reads_secrets(
    blueprints: Blueprints, slug: str
) -> None:
    made = blueprints.below(slug, blueprints.substrate(slug))

    secrets = {name for name, each in made.resources.items() if each["kind"] == "Secret"}
    holders = {name for name, each in made.resources.items() if _holds(each, TOKEN)}
    assert holders == secrets
    assert len(secrets) == 1


def _holds(body: Object, token: str) -> bool:
    texts = [json.dumps(body)]
    if body["kind"] == "Secret":
        texts += [base64.b64decode(each).decode() for each in body["data"].values()]
    return any(token in text for text in texts)


LAST = "LastAsyncOperation"
ASYNC = "async create failed: failed to create the resource: [{0 %s []}]"
SYNC = "create failed: cannot create object: %s"
FINAL = {
    "aws-ec2-instance": ("server", LAST, ASYNC, "api error InvalidParameterValue: Value (t9.huge)"),
    "generic-vm": ("machine", "Synced", SYNC, 'VirtualMachine "pr-1" is invalid: spec.template'),
    "hetzner-server": ("server", LAST, ASYNC, "unsupported location (invalid_input, 9c1e)"),
    "kubernetes-daemonset": ("daemonset", "Synced", SYNC, 'DaemonSet "pr-1" is invalid: spec'),
    "kubernetes-helm": (
        *("release", "Synced", SYNC),
        "values don't meet the specifications of the schema(s) in the following chart(s): plexd",
    ),
    "openstack-instance": (
        *("server", LAST, ASYNC),
        "Error waiting for instance (1f3a): unexpected state 'ERROR', wanted target 'ACTIVE'",
    ),
}
"""By blueprint: which resource says in which condition, and how, what is never taken back."""
PASSING = (
    "create failed: api error InsufficientInstanceCapacity: (resource_limit_exceeded): Quota "
    "exceeded for instances: Internal error occurred: failed calling webhook: context deadline"
)


@pytest.mark.parametrize("slug", SLUGS)
def test_what_a_provider_refuses_for_good_reaches_the_blueprints_xr_and_what_may_pass_does_not(
    blueprints: Blueprints, slug: str
) -> None:
    xr = blueprints.substrate(slug)
    (terminal,) = loaded(EXAMPLES / slug / "blueprint.yaml")["spec"]["terminalConditions"]
    name, kind, frame, words = FINAL[slug]
    final = frame % words
    made = blueprints.below(slug, xr).resources[name]
    said = {}
    for message in (final, PASSING):
        synced = {"type": "Synced", "status": "False", "reason": "ReconcileError"}
        told = {**synced, "type": kind, "message": message}
        conditions = [told] if kind == "Synced" else [{**synced, "message": ""}, told]
        observed = {**made, "status": {"conditions": conditions}}
        found = blueprints.below(slug, xr, observed).xr["status"]["conditions"]
        (said[message],) = [each for each in found if each["type"] == terminal["type"]]

    assert (said[final]["status"], said[final]["reason"]) == (terminal["status"], "Refused")
    assert final.endswith(said[final]["message"])
    assert (said[PASSING]["status"], said[PASSING]["reason"]) == ("False", "NotFailed")


def test_the_daemonsets_pod_is_the_bundles(blueprints: Blueprints) -> None:
    xr = blueprints.substrate("kubernetes-daemonset")
    name, image = xr["metadata"]["name"], xr["spec"]["parameters"]["helmValues"]["plexdImage"]

    made = blueprints.below("kubernetes-daemonset", xr)

    pod = made.resources["daemonset"]["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]
    assert pod.pop("nodeSelector") == {"kubernetes.io/hostname": "worker-1"}
    wanted = json.loads(
        json.dumps(plexd_pod.plexd(image=image, trust=False))
        .replace(json.dumps(plexd_pod.SECRET), json.dumps(name))
        .replace(json.dumps(plexd_pod.CONFIG_MAP), json.dumps(name))
    )
    assert pod == wanted


def test_the_daemonsets_configuration_is_the_bundles(blueprints: Blueprints) -> None:
    xr = blueprints.substrate("kubernetes-daemonset")

    made = blueprints.below("kubernetes-daemonset", xr)

    files = made.resources["config"]["spec"]["forProvider"]["manifest"]["data"]
    assert yaml.safe_load(files[plexd_pod.CONFIG_KEY]) == plexd_pod.config(
        api_url=xr["spec"]["parameters"]["helmValues"]["apiUrl"],
        project_id=xr["metadata"]["namespace"].removeprefix("plexsphere-project-"),
        handle=xr["metadata"]["name"],
    )


@pytest.mark.parametrize("slug", ["generic-vm", "kubernetes-daemonset"])
def test_what_goes_to_a_cluster_is_what_kubernetes_takes(
    blueprints: Blueprints, slug: str, tmp_path: Path
) -> None:
    made = blueprints.below(slug, blueprints.substrate(slug))

    manifests = [
        each["spec"]["forProvider"]["manifest"]
        for each in made.resources.values()
        if each["kind"] == "Object"
    ]
    built_in = [each for each in manifests if group(each) != "kubevirt.io"]
    assert built_in
    status, told = blueprints.validate(built_in, _schemas(slug, tmp_path))
    assert status == 0, told


def test_the_definitions_are_what_crossplane_takes(command: Crossplane, core_crds: Path) -> None:
    objects = [
        loaded(path) for folder in (XRDS, COMPOSITIONS) for path in sorted(folder.glob("*.yaml"))
    ]
    # The inputs' schemas are their functions', which bring them.
    for each in objects:
        for step in each["spec"].get("pipeline", []):
            step.pop("input", None)

    status, told = command.validate(objects, core_crds)

    assert status == 0, told


def test_the_configuration_depends_on_the_functions_that_its_compositions_name() -> None:
    steps = [
        step["functionRef"]["name"]
        for path in COMPOSITIONS.glob("*.yaml")
        for step in loaded(path)["spec"]["pipeline"]
    ]

    dependencies = loaded(CONFIGURATION)["spec"]["dependsOn"]

    assert _installed(dependencies, "Function") == set(steps) == {PATCHES, TRANSFORMER, READY}
    assert len(_installed(dependencies, "Configuration")) == 1


def _installed(dependencies: Sequence[Mapping[str, Any]], kind: str) -> set[str]:
    """What dependency resolution calls the packages of a kind: organisation and name."""
    packages = [each["package"] for each in dependencies if each["kind"] == kind]
    return {"-".join(package.split("/")[1:]) for package in packages}


def test_the_examples_functions_are_those_the_compositions_name() -> None:
    listed = {each["metadata"]["name"] for each in every(EXAMPLES / "functions.yaml")}

    ours = {step["functionRef"]["name"] for step in loaded(COMPOSITION)["spec"]["pipeline"]}

    assert listed == {*ours, PATCHES, TRANSFORMER, READY}
