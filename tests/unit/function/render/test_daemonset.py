"""The DaemonSet bundle: what it holds, what it refuses, and that it says no secret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from function.render.documents.daemonset import (
    DaemonSetBundle,
    Profile,
    TokenDelivery,
    document,
    manifests,
)
from tests.unit.function import given

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

SECRET = DaemonSetBundle(
    api_url="https://api.example.org",
    plexd_image="registry.example.org/plexd:v0.8.0",
    token_delivery=TokenDelivery.SECRET,
    token=TokenPlaintext(given.TOKEN),
)
ESO = replace(
    SECRET,
    token_delivery=TokenDelivery.ESO,
    token=None,
    secret_store="openbao",
    remote_key="acme/node-1",
)
PLEXD = replace(
    SECRET, profile=Profile.PLEXD, project_id=given.PROJECT, resource_handle=given.XR_NAME
)
EVERY = {
    "seed-secret": SECRET,
    "seed-eso": ESO,
    "plexd-secret": PLEXD,
    "plexd-eso": replace(
        ESO, profile=Profile.PLEXD, project_id=given.PROJECT, resource_handle=given.XR_NAME
    ),
}


def found(bundle: DaemonSetBundle, kind: str) -> dict[str, Any]:
    (item,) = [item for item in manifests(bundle) if item["kind"] == kind]
    return item


def pod(bundle: DaemonSetBundle) -> dict[str, Any]:
    spec = found(bundle, "DaemonSet")["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def container(bundle: DaemonSetBundle) -> dict[str, Any]:
    (only,) = pod(bundle)["containers"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("seed-secret", ["Namespace", "Secret", "DaemonSet"]),
        ("seed-eso", ["Namespace", "ExternalSecret", "DaemonSet"]),
        ("plexd-secret", ["Namespace", "Secret", "ConfigMap", "DaemonSet"]),
        ("plexd-eso", ["Namespace", "ExternalSecret", "ConfigMap", "DaemonSet"]),
    ],
)
def test_a_bundle_is_its_namespace_the_token_and_the_daemonset(name: str, kinds: list[str]) -> None:
    made = manifests(EVERY[name])

    assert [item["kind"] for item in made] == kinds
    assert made[0]["metadata"]["name"] == "plexsphere-system"
    assert {item["metadata"]["namespace"] for item in made[1:]} == {"plexsphere-system"}


def test_the_secret_holds_the_token_under_its_key() -> None:
    secret = found(SECRET, "Secret")

    assert secret["metadata"]["name"] == "plexd-bootstrap-token"
    assert secret["stringData"] == {"token": given.TOKEN}


def test_the_external_secret_fetches_the_token_once_into_the_same_secret() -> None:
    external = found(replace(ESO, remote_property="token"), "ExternalSecret")

    assert external["apiVersion"] == "external-secrets.io/v1"
    assert external["metadata"]["name"] == "plexd-bootstrap-token"
    assert external["spec"] == {
        "refreshInterval": "0s",
        "secretStoreRef": {"kind": "ClusterSecretStore", "name": "openbao"},
        "target": {"name": "plexd-bootstrap-token", "creationPolicy": "Owner"},
        "data": [
            {
                "secretKey": "token",
                "remoteRef": {"key": "acme/node-1", "property": "token"},
            }
        ],
    }


@pytest.mark.parametrize("bundle", [SECRET, ESO], ids=["secret", "eso"])
def test_the_seed_pod_has_every_hardening_line_of_the_seed(bundle: DaemonSetBundle) -> None:
    assert pod(bundle)["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(bundle)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for bound in ("requests", "limits"):
        assert set(container(bundle)["resources"][bound]) == {"cpu", "memory"}


def test_the_seed_pod_mounts_the_token_alone_and_read_only() -> None:
    assert pod(SECRET)["volumes"] == [
        {
            "name": "bootstrap-token",
            "secret": {
                "secretName": "plexd-bootstrap-token",
                "defaultMode": 0o440,
                "items": [{"key": "token", "path": "bootstrap-token"}],
            },
        }
    ]
    assert container(SECRET)["volumeMounts"] == [
        {"name": "bootstrap-token", "mountPath": "/etc/plexd", "readOnly": True}
    ]
    assert container(SECRET)["args"] == [
        "register",
        "--bootstrap-token-file=/etc/plexd/bootstrap-token",
        "--api-url=https://api.example.org",
    ]


def test_the_plexd_pod_joins_the_hosts_network_with_two_capabilities_and_no_more() -> None:
    assert pod(PLEXD)["hostNetwork"] is True
    assert pod(PLEXD)["tolerations"] == [{"operator": "Exists"}]
    assert container(PLEXD)["args"] == ["up", "--config", "/etc/plexd/config.yaml"]
    assert container(PLEXD)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
    }
    # An added capability reaches no other user where privileges cannot be gained.
    assert pod(PLEXD)["securityContext"]["runAsUser"] == 0


def test_the_plexd_pod_keeps_its_identity_on_the_host() -> None:
    volumes = {volume["name"]: volume for volume in pod(PLEXD)["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container(PLEXD)["volumeMounts"]}

    writable = {path for path, mount in mounts.items() if not mount.get("readOnly")}
    assert writable == {"/var/lib/plexd", "/var/run/plexd"}
    assert volumes[mounts["/var/lib/plexd"]["name"]]["hostPath"] == {
        "path": "/var/lib/plexd",
        "type": "DirectoryOrCreate",
    }


def test_the_plexd_pod_finds_its_configuration_beside_the_token() -> None:
    (etc,) = [volume for volume in pod(PLEXD)["volumes"] if "projected" in volume]
    files = found(PLEXD, "ConfigMap")["data"]

    assert etc["projected"] == {
        "defaultMode": 0o440,
        "sources": [
            {
                "secret": {
                    "name": "plexd-bootstrap-token",
                    "items": [{"key": "token", "path": "bootstrap-token"}],
                }
            },
            {"configMap": {"name": "plexd-config"}},
        ],
    }
    assert {"name": etc["name"], "mountPath": "/etc/plexd", "readOnly": True} in container(PLEXD)[
        "volumeMounts"
    ]
    assert yaml.safe_load(files["config.yaml"]) == {
        "mode": "node",
        "data_dir": "/var/lib/plexd",
        "api": {"base_url": "https://api.example.org"},
        "registration": {
            "project_id": given.PROJECT,
            "resource_handle": given.XR_NAME,
            "token_file": "/etc/plexd/bootstrap-token",
        },
    }


def test_the_plexd_pod_trusts_a_given_ca_only() -> None:
    trusting = replace(PLEXD, ca_bundle=PEM * 2)

    assert found(trusting, "ConfigMap")["data"]["ca.crt"] == PEM * 2
    assert container(trusting)["env"] == [{"name": "SSL_CERT_FILE", "value": "/etc/plexd/ca.crt"}]
    assert "ca.crt" not in found(PLEXD, "ConfigMap")["data"]
    assert "env" not in container(PLEXD)


def test_only_the_plexd_namespace_admits_privileged_pods() -> None:
    level = "pod-security.kubernetes.io/enforce"

    assert found(PLEXD, "Namespace")["metadata"]["labels"][level] == "privileged"
    assert level not in found(SECRET, "Namespace")["metadata"]["labels"]


@pytest.mark.parametrize("bundle", EVERY.values(), ids=EVERY)
def test_no_pod_holds_credentials_of_its_cluster(bundle: DaemonSetBundle) -> None:
    assert pod(bundle)["automountServiceAccountToken"] is False


@pytest.mark.parametrize("bundle", EVERY.values(), ids=EVERY)
def test_the_selector_selects_the_pods(bundle: DaemonSetBundle) -> None:
    spec = found(bundle, "DaemonSet")["spec"]

    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("bundle", EVERY.values(), ids=EVERY)
def test_a_node_is_named_on_wish(bundle: DaemonSetBundle) -> None:
    named = replace(bundle, node="worker-1")

    assert pod(named)["nodeSelector"] == {"kubernetes.io/hostname": "worker-1"}
    assert "nodeSelector" not in pod(bundle)


@pytest.mark.parametrize("bundle", EVERY.values(), ids=EVERY)
def test_the_document_reads_as_the_manifests_every_time(bundle: DaemonSetBundle) -> None:
    documents = {document(bundle) for _ in range(3)}

    assert len(documents) == 1
    assert tuple(yaml.safe_load_all(documents.pop())) == manifests(bundle)


@pytest.mark.parametrize("name", EVERY)
def test_the_token_stands_once_in_secret_mode_and_nowhere_else(name: str) -> None:
    assert document(EVERY[name]).count(given.TOKEN) == (1 if "secret" in name else 0)
    assert given.TOKEN not in repr(EVERY[name])


def test_changing_a_manifest_changes_no_later_one() -> None:
    before = document(PLEXD)

    for item in manifests(PLEXD):
        item["metadata"]["labels"].clear()
    pod(PLEXD)["volumes"][0]["projected"]["sources"].clear()
    container(PLEXD)["resources"]["limits"].clear()

    assert document(PLEXD) == before


@pytest.mark.parametrize(
    ("bundle", "changes", "field"),
    [
        (SECRET, {"token_delivery": TokenDelivery.UNSET}, "tokenDelivery"),
        (SECRET, {"api_url": None}, "apiURL"),
        (SECRET, {"api_url": " "}, "apiURL"),
        (SECRET, {"api_url": "api.example.org"}, "apiURL"),
        (SECRET, {"api_url": "ftp://api.example.org"}, "apiURL"),
        (PLEXD, {"api_url": "https://x/\nEVIL: 1"}, "apiURL"),
        (SECRET, {"plexd_image": None}, "plexdImage"),
        (SECRET, {"plexd_image": "registry.example.org/plexd"}, "plexdImage"),
        (PLEXD, {"plexd_image": "registry.example.org/plexd:latest"}, "plexdImage"),
        (SECRET, {"token": None}, "bootstrap.token"),
        (SECRET, {"token": TokenPlaintext("")}, "bootstrap.token"),
        (SECRET, {"token": TokenPlaintext("EVIL token")}, "bootstrap.token"),
        (SECRET, {"secret_store": "openbao"}, "secretStore"),
        (SECRET, {"remote_key": "k"}, "remoteKey"),
        (SECRET, {"remote_property": "p"}, "remoteProperty"),
        (ESO, {"token": TokenPlaintext("EVIL")}, "bootstrap.token"),
        (ESO, {"secret_store": None}, "secretStore"),
        (ESO, {"secret_store": ""}, "secretStore"),
        (ESO, {"secret_store": "EVIL_store"}, "secretStore"),
        (ESO, {"secret_store": "a" * 254}, "secretStore"),
        (ESO, {"remote_key": None}, "remoteKey"),
        (ESO, {"remote_key": " "}, "remoteKey"),
        (ESO, {"remote_key": "EVIL\nkey"}, "remoteKey"),
        (ESO, {"remote_key": "k" * 1025}, "remoteKey"),
        (ESO, {"remote_property": ""}, "remoteProperty"),
        (SECRET, {"node": "EVIL/node"}, "node"),
        (SECRET, {"node": ""}, "node"),
        (SECRET, {"project_id": given.PROJECT}, "projectID"),
        (SECRET, {"resource_handle": given.XR_NAME}, "resourceHandle"),
        (SECRET, {"ca_bundle": PEM}, "caBundle"),
        (PLEXD, {"project_id": None}, "projectID"),
        (PLEXD, {"project_id": "EVIL"}, "projectID"),
        (PLEXD, {"project_id": f"{given.PROJECT}\n"}, "projectID"),
        (PLEXD, {"resource_handle": None}, "resourceHandle"),
        (PLEXD, {"resource_handle": "EVIL handle"}, "resourceHandle"),
        (PLEXD, {"ca_bundle": "EVIL"}, "caBundle"),
    ],
)
def test_it_fails_closed_and_names_the_field(
    bundle: DaemonSetBundle, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(ContractError) as caught:
        manifests(replace(bundle, **changes))

    assert caught.value.field == field
    assert "EVIL" not in str(caught.value)


@pytest.mark.parametrize("key", ["y", "08", "1e3", "0x1F", "null", "a: b", "'", '"', "{{x}}", "#"])
def test_a_key_of_the_store_is_read_as_it_was_given(key: str) -> None:
    text = document(replace(ESO, remote_key=key))

    (external,) = [
        item for item in yaml.safe_load_all(text) if item and item["kind"] == "ExternalSecret"
    ]
    assert external["spec"]["data"][0]["remoteRef"] == {"key": key}
