"""What a thief of the reconciler's account tries, asked of a real API server with its own token.

Each path of "Role Based Access Control Good Practices", "Kubernetes RBAC - privilege
escalation risks", of Kubernetes' documentation, and what the account's own rights suggest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from tests.e2e.deploy.identity import MASTERS, RECONCILER, Caller, wait_until
from tests.e2e.deploy.place import CONFIG_MAP, Object, Place, manifest
from tests.e2e.deploy.rights import AGGREGATED_TIMEOUT_S, may

pytestmark = pytest.mark.e2e

SYSTEM: Final = ("kube-system", "plexsphere-system", "default")
STRONG: Final = "clusterrole-aggregation-controller"
"""An account of kube-system that holds `escalate`, and so everything."""

API: Final = "rbac.authorization.k8s.io"
RBAC: Final = f"/apis/{API}/v1"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
SIGNING: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
OURS: Final = {
    "kind": "ServiceAccount",
    "name": "provisioning-broker",
    "namespace": "plexsphere-system",
}
PATCHES: Final = ("application/merge-patch+json", "application/apply-patch+yaml")


@pytest.fixture(scope="module")
def thief(deployed: ControlPlane) -> Caller:
    return Caller(deployed.service_account_kubeconfig("plexsphere-system", "provisioning-broker"))


@pytest.fixture
async def project(deployed: ControlPlane, place: Place) -> Place:
    """A Project's namespace in which the account has its rights."""
    kubeconfig = deployed.service_account_kubeconfig("plexsphere-system", "provisioning-broker")
    client: KubernetesClient = await open_client(kubeconfig)
    await KubernetesGateway(client).namespaces.hold_namespace(place.name, records=0)
    await client.close()
    wait_until(
        lambda: may(place.admin, RECONCILER, "get", "/secrets", namespace=place.name),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what="the account has its rights",
    )
    return place


@pytest.fixture
def secret(admin: Caller) -> Iterator[str]:
    """Somebody's Secret where the account has no business."""
    name = f"probe-{uuid4().hex[:8]}"
    path = "/api/v1/namespaces/kube-system/secrets"
    body = {**manifest(("", "Secret", "secrets"), name), "stringData": {"key": "precious"}}
    assert admin.create(path, body).ok
    yield f"{path}/{name}"
    admin.delete(f"{path}/{name}")


def account_token(account: str, name: str = "") -> Object:
    """Render the Secret that makes the API server hand out a token that never ends."""
    metadata = {
        "name": name or f"probe-{uuid4().hex[:8]}",
        "annotations": {"kubernetes.io/service-account.name": account},
    }
    kind = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}
    return {**kind, "metadata": metadata}


def binding(role: str = "provisioning-broker-project", **changes: Any) -> Object:
    """Render the account's own RoleBinding, changed."""
    return {
        "apiVersion": f"{API}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "provisioning-broker"},
        "roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": role},
        "subjects": [OURS],
        **changes,
    }


@pytest.mark.parametrize(
    ("namespace", "account"),
    [("kube-system", STRONG), ("plexsphere-system", "provisioning-broker")],
)
def test_it_gets_no_token_of_an_account_by_a_secret(
    deployed: ControlPlane, thief: Caller, namespace: str, account: str
) -> None:
    body = account_token(account)
    path = f"/api/v1/namespaces/{namespace}/secrets"

    answer = thief.create(path, body)

    Caller(deployed.kubeconfig).delete(f"{path}/{body['metadata']['name']}")
    assert answer.status == 403


@pytest.mark.parametrize("name", ["", "web-1-g1"])
def test_nor_one_of_a_projects_own_accounts(thief: Caller, project: Place, name: str) -> None:
    answer = thief.create(f"{project.path}/secrets", account_token("default", name))

    assert answer.status == 403
    assert "plexsphere-account" in answer.message


@pytest.mark.parametrize("namespace", ["", *(f"/namespaces/{each}" for each in SYSTEM)])
@pytest.mark.parametrize("watch", ["", "?watch=true&timeoutSeconds=1"])
def test_it_lists_and_watches_no_secrets(thief: Caller, namespace: str, watch: str) -> None:
    assert thief.get(f"/api/v1{namespace}/secrets{watch}").status == 403


def test_it_lists_no_secrets_of_a_project_either(thief: Caller, project: Place) -> None:
    assert thief.get(f"{project.path}/secrets").status == 403


def test_it_reads_no_secret_outside_projects(thief: Caller, secret: str) -> None:
    """Nor by what answers a write: a patch, or a deletion that waits, would show it whole."""
    waits = {"propagationPolicy": "Foreground", "dryRun": ["All"]}
    answers = [thief.get(secret), thief.delete(secret, **waits)]
    answers += [thief.request("PATCH", secret, {}, content_type=each) for each in PATCHES]

    assert [answer.status for answer in answers] == [403] * len(answers)
    assert "precious" not in str(answers)


@pytest.mark.parametrize("where", ["kube-system", "a Project"])
@pytest.mark.parametrize(
    ("group", "kind", "plural"),
    [
        ("/api/v1", "Pod", "pods"),
        ("/api/v1", "ReplicationController", "replicationcontrollers"),
        ("/apis/apps/v1", "Deployment", "deployments"),
        ("/apis/apps/v1", "DaemonSet", "daemonsets"),
        ("/apis/apps/v1", "StatefulSet", "statefulsets"),
        ("/apis/apps/v1", "ReplicaSet", "replicasets"),
        ("/apis/batch/v1", "Job", "jobs"),
        ("/apis/batch/v1", "CronJob", "cronjobs"),
    ],
)
def test_it_runs_no_workload(
    thief: Caller, project: Place, where: str, group: str, kind: str, plural: str
) -> None:
    namespace = project.name if where == "a Project" else where
    body = {"apiVersion": group.partition("/")[2].partition("/")[2], "kind": kind}

    answer = thief.create(f"{group}/namespaces/{namespace}/{plural}", {**body, "metadata": {}})

    assert answer.status == 403


def test_it_makes_no_persistent_volume(thief: Caller) -> None:
    body = manifest(("", "PersistentVolume", "persistentvolumes"), "probe")
    body["spec"] = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/"}}

    assert thief.create("/api/v1/persistentvolumes", body).status == 403


@pytest.mark.parametrize("verb", ["get", "create", "update", "patch", "delete"])
@pytest.mark.parametrize(
    "resource", ["/nodes/proxy", "/pods/proxy", "/services/proxy", "/pods/exec", "/pods/attach"]
)
def test_it_reaches_nothing_by_proxy(admin: Caller, verb: str, resource: str) -> None:
    assert not may(admin, RECONCILER, verb, resource)
    assert not may(admin, RECONCILER, verb, resource, namespace="kube-system")


@pytest.mark.parametrize(
    "role", ["provisioning-broker-project", "provisioning-broker-reconciler", "cluster-admin"]
)
def test_it_escalates_no_role(thief: Caller, role: str) -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    path = f"{RBAC}/clusterroles/{role}"

    answers = [
        thief.request("PATCH", path, {"rules": [everything]}, content_type=each) for each in PATCHES
    ]
    answers += [thief.delete(path), thief.request("PUT", path, {})]

    assert [answer.status for answer in answers] == [403] * 4


@pytest.mark.parametrize("aggregate", ["aggregate-to-reconciler", "aggregate-to-project"])
def test_it_aggregates_no_role_to_its_own(thief: Caller, aggregate: str) -> None:
    label = {f"{names.GROUP}/{aggregate}": "true"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    body = {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"probe-{uuid4().hex[:8]}", "labels": label},
        "rules": [rule],
    }
    labelled = {"metadata": {"labels": label}}

    assert thief.create(f"{RBAC}/clusterroles", body).status == 403
    assert thief.patch(f"{RBAC}/clusterroles/cluster-admin", labelled).status == 403


@pytest.mark.parametrize("namespace", SYSTEM)
def test_it_binds_its_role_nowhere_but_in_projects(thief: Caller, namespace: str) -> None:
    answer = thief.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding())

    assert answer.status == 403
    assert "plexsphere-account" in answer.message


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"name": "another"}},
        {"role": "cluster-admin"},
        {"role": "provisioning-broker-reconciler"},
        {"roleRef": {"apiGroup": API, "kind": "Role", "name": "provisioning-broker-project"}},
        {"subjects": []},
        {"subjects": [{**OURS, "name": "default"}]},
        {"subjects": [{**OURS, "namespace": "default"}]},
        {"subjects": [{"kind": "User", "name": "provisioning-broker", "apiGroup": API}]},
        {"subjects": [OURS, {"kind": "Group", "name": "system:authenticated", "apiGroup": API}]},
    ],
    ids=str,
)
def test_it_binds_no_other_role_and_for_nobody_else(
    thief: Caller, place: Place, changes: dict[str, Any]
) -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = manifest((API, "Role", "roles"), "provisioning-broker-project")
    whole = {**role, "apiVersion": f"{API}/v1", "rules": [everything]}
    assert place.admin.create(f"{RBAC}/namespaces/{place.name}/roles", whole).ok
    path = f"{RBAC}/namespaces/{place.name}/rolebindings"

    assert thief.create(path, binding(**changes)).status == 403
    assert place.admin.as_user(RECONCILER, MASTERS).create(path, binding(**changes)).status == 403


def test_nor_does_it_add_somebody_to_its_binding(thief: Caller, project: Place) -> None:
    path = f"{RBAC}/namespaces/{project.name}/rolebindings/provisioning-broker"
    group = {"kind": "Group", "name": "system:authenticated", "apiGroup": API}

    assert thief.patch(path, {"subjects": [OURS, group]}).status == 403


def test_it_binds_nothing_everywhere(thief: Caller) -> None:
    body = {**binding(), "kind": "ClusterRoleBinding"}

    assert thief.create(f"{RBAC}/clusterrolebindings", body).status == 403


@pytest.mark.parametrize("resource", ["/users", "/groups", "/serviceaccounts"])
def test_it_impersonates_nobody(deployed: ControlPlane, admin: Caller, resource: str) -> None:
    kubeconfig = deployed.service_account_kubeconfig("plexsphere-system", "provisioning-broker")
    other = Caller(kubeconfig, user="jane", groups=(MASTERS,))

    assert other.get("/api/v1/namespaces/default").status == 403
    assert not may(admin, RECONCILER, "impersonate", resource)


def test_it_has_no_certificate_issued(thief: Caller, admin: Caller) -> None:
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": f"probe-{uuid4().hex[:8]}"},
        "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]},
    }
    assert thief.create(SIGNING, body).status == 403

    for resource in ("certificatesigningrequests/approval", "certificatesigningrequests/status"):
        assert not may(admin, RECONCILER, "update", f"certificates.k8s.io/{resource}")
    assert not may(admin, RECONCILER, "approve", "certificates.k8s.io/signers")
    assert not may(admin, RECONCILER, "sign", "certificates.k8s.io/signers")


@pytest.mark.parametrize("account", [("kube-system", STRONG), ("default", "default"), SYSTEM[1:2]])
def test_it_requests_no_token(thief: Caller, account: tuple[str, ...]) -> None:
    namespace, name = (*account, "provisioning-broker")[:2]
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}

    answer = thief.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)

    assert answer.status == 403


@pytest.mark.parametrize(
    "path",
    [
        "validatingadmissionpolicies/plexsphere-account",
        "validatingadmissionpolicies/plexsphere-hold",
        "validatingadmissionpolicybindings/plexsphere-account",
        "validatingadmissionpolicybindings/plexsphere-hold",
    ],
)
def test_it_changes_no_policy(thief: Caller, path: str) -> None:
    whole = f"{ADMISSION}/{path}"
    audited = {"spec": {"validationActions": ["Audit"]}}

    answers = [thief.patch(whole, audited), thief.delete(whole), thief.request("PUT", whole, {})]

    assert [answer.status for answer in answers] == [403] * 3


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ],
)
def test_it_controls_no_admission(thief: Caller, kind: str, plural: str) -> None:
    version = "admissionregistration.k8s.io/v1"
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "probe"}}

    assert thief.create(f"{ADMISSION}/{plural}", body).status == 403


@pytest.mark.parametrize("namespace", SYSTEM)
@pytest.mark.parametrize("content_type", PATCHES)
def test_it_lowers_the_security_of_no_namespace(
    thief: Caller, namespace: str, content_type: str
) -> None:
    metadata = {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    path = f"/api/v1/namespaces/{namespace}?force=true&fieldManager=thief"
    if content_type == PATCHES[0]:
        path = f"/api/v1/namespaces/{namespace}"
    answer = thief.request("PATCH", path, body, content_type=content_type)

    assert answer.status == 403
    assert "plexsphere-account" in answer.message


NEW_PROJECT = names.project_namespace(UUID("0197b1a2-7c3d-7e4f-8a5b-000000000077"))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("kube-extra", {}),
        ("plexsphere-project-mine", {}),
        ("plexsphere-project-00000000", {}),
        (f"{NEW_PROJECT}-x", {}),
        (NEW_PROJECT, {"pod-security.kubernetes.io/enforce": "privileged"}),
        (NEW_PROJECT, {"istio-injection": "disabled"}),
    ],
)
def test_it_makes_no_namespace_but_a_projects(
    thief: Caller, name: str, labels: dict[str, str]
) -> None:
    body = manifest(("", "Namespace", "namespaces"), name, labels=labels)

    assert thief.create("/api/v1/namespaces", body).status == 403


def test_whatever_it_were_given_it_creates_nothing_else(place: Place) -> None:
    """A role that somebody aggregates to it with too much in it opens nothing."""
    mighty = place.admin.as_user(RECONCILER, MASTERS)

    answer = mighty.create(place.all(CONFIG_MAP), manifest(CONFIG_MAP, "probe"))

    assert answer.status == 403
    assert "creates Secrets, ExternalSecrets, ProviderConfigs" in answer.message
