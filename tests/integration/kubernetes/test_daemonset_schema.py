"""The DaemonSet bundle against a real API server and the real ExternalSecret schema.

Nothing of it is stored: every object is a dry run of a server-side apply, in which the
server refuses unknown fields and wrong values as it would for a user.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import pytest
import yaml

from dev import schemas
from dev.controlplane import ControlPlane
from function.contract.secrets import TokenPlaintext
from function.render.documents.daemonset import DaemonSetBundle, Profile, TokenDelivery, document
from tests.e2e.deploy.identity import Answer, Caller, wait_until

pytestmark = pytest.mark.integration

ESO_MODULE: Final = "github.com/external-secrets/external-secrets"
ESO_VERSION: Final = "v1.3.2"
ESO_CRD: Final = "config/crds/bases/external-secrets.io_externalsecrets.yaml"

STRICT: Final = "fieldManager=tests&fieldValidation=Strict&dryRun=All"
PATHS: Final = {
    "Namespace": "/api/v1/namespaces",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "ExternalSecret": "/apis/external-secrets.io/v1/namespaces/{namespace}/externalsecrets",
}
SETTLED_TIMEOUT_S: Final = 30.0
"""A CRD is served, and a namespace has its service account, within a few seconds."""

AGENT: Final[dict[str, Any]] = {
    "api_url": "https://api.example.org",
    "plexd_image": "registry.example.org/plexd:v0.8.0",
    "node": "worker-1",
}
SECRET: Final[dict[str, Any]] = {
    "token_delivery": TokenDelivery.SECRET,
    "token": TokenPlaintext("sample-token"),
}
ESO: Final[dict[str, Any]] = {
    "token_delivery": TokenDelivery.ESO,
    "secret_store": "openbao",
    "remote_key": "acme/worker-1",
    "remote_property": "token",
}
PLEXD: Final[dict[str, Any]] = {
    "profile": Profile.PLEXD,
    "project_id": "0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "resource_handle": "pr-0197b1a2-7c3d-7e4f-8a5b-000000000001",
    "ca_bundle": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
}
BUNDLES: Final = {
    "seed-secret": DaemonSetBundle(**AGENT, **SECRET),
    "seed-eso": DaemonSetBundle(**AGENT, **ESO),
    "plexd-secret": DaemonSetBundle(**AGENT, **SECRET, **PLEXD),
    "plexd-eso": DaemonSetBundle(**AGENT, **ESO, **PLEXD),
}

Object = dict[str, Any]


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlane) -> Caller:
    crd = yaml.safe_load(schemas.module_file(ESO_MODULE, ESO_VERSION, ESO_CRD))
    control_plane.apply(crd)
    caller = Caller(control_plane.kubeconfig)
    wait_until(
        lambda: caller.get("/apis/external-secrets.io/v1/externalsecrets").ok,
        timeout_s=SETTLED_TIMEOUT_S,
        what="ExternalSecrets are served",
    )
    return caller


@pytest.fixture
def namespace(admin: Caller) -> Iterator[str]:
    name = f"daemonset-{uuid4().hex[:12]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert admin.create(PATHS["Namespace"], body).ok
    yield name
    admin.delete(f"{PATHS['Namespace']}/{name}")


def objects(name: str, namespace: str) -> list[Object]:
    """Read a bundle as it is printed, moved to a namespace of the test's own."""
    text = document(BUNDLES[name]).replace("plexsphere-system", namespace)
    return list(yaml.safe_load_all(text))


def applied(admin: Caller, item: Object) -> Answer:
    metadata = item["metadata"]
    folder = PATHS[item["kind"]].format(namespace=metadata.get("namespace"))
    return admin.request(
        "PATCH",
        f"{folder}/{metadata['name']}?{STRICT}",
        item,
        content_type="application/apply-patch+yaml",
    )


def the_pod(name: str, namespace: str) -> Object:
    (daemonset,) = [item for item in objects(name, namespace) if item["kind"] == "DaemonSet"]
    metadata = {"name": "plexd", "namespace": namespace}
    spec = daemonset["spec"]["template"]["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("name", BUNDLES)
def test_every_object_passes_the_servers_strict_validation(
    admin: Caller, namespace: str, name: str
) -> None:
    for item in objects(name, namespace):
        answer = applied(admin, item)

        assert answer.ok, f"{item['kind']}: {answer.message}"
        assert answer.body["kind"] == item["kind"]


@pytest.mark.parametrize("name", ["plexd-secret", "plexd-eso"])
def test_the_validation_refuses_what_is_misspelt(admin: Caller, namespace: str, name: str) -> None:
    for item in objects(name, namespace):
        misspelt = copy.deepcopy(item)
        misspelt["specc" if "spec" in item else "dataa"] = {}

        assert not applied(admin, misspelt).ok, item["kind"]


def test_the_server_reads_the_token_files_mode_as_octal_0440(admin: Caller, namespace: str) -> None:
    (daemonset,) = [
        item for item in objects("seed-secret", namespace) if item["kind"] == "DaemonSet"
    ]

    spec = applied(admin, daemonset).body["spec"]["template"]["spec"]

    assert spec["volumes"][0]["secret"]["defaultMode"] == 0o440


@pytest.mark.parametrize(
    ("name", "level", "admitted"),
    [
        ("seed-secret", "restricted", True),
        ("plexd-secret", "baseline", False),
        ("plexd-secret", "privileged", True),
    ],
)
def test_pod_security_admits_the_pods_at_the_documented_level(
    admin: Caller, namespace: str, name: str, level: str, *, admitted: bool
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level}
    folder = f"/api/v1/namespaces/{namespace}"
    assert admin.patch(folder, {"metadata": {"labels": labels}}).ok
    wait_until(
        lambda: admin.get(f"{folder}/serviceaccounts/default").ok,
        timeout_s=SETTLED_TIMEOUT_S,
        what="the namespace has its service account",
    )

    answer = admin.create(
        f"{folder}/pods?dryRun=All&fieldValidation=Strict", the_pod(name, namespace)
    )

    assert answer.ok is admitted, answer.message
    assert admitted or "PodSecurity" in answer.message
