"""Who may do what to our kinds, asked of a real API server."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from tests.e2e.deploy.identity import BREAK_GLASS, CROSSPLANE, RECONCILER, Caller, wait_until
from tests.e2e.deploy.place import Place

pytestmark = pytest.mark.e2e

AGGREGATED_TIMEOUT_S = 20.0
"""Roles are aggregated within a second or two."""

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")
CHANGE = ("update", "patch")

RECORDS = f"{names.GROUP}/provisioningrecords"
XRS = f"{names.GROUP}/provisionedresources"
BLUEPRINTS = f"{names.GROUP}/blueprintversions"
CATALOG = (BLUEPRINTS, f"{names.GROUP}/clouds", f"{names.GROUP}/cloudcredentials")
TENANCY = (f"{names.GROUP}/domains", f"{names.GROUP}/projects")
SUBSTRATE = f"{names.BLUEPRINTS_GROUP}/xgenericvms"
XRD = "apiextensions.crossplane.io/compositeresourcedefinitions"
CRD = "apiextensions.k8s.io/customresourcedefinitions"
POLICIES = "admissionregistration.k8s.io/validatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/validatingadmissionpolicybindings"
PROVIDER_CONFIGS = tuple(
    f"{provider}.crossplane.io/providerconfigs"
    for provider in ("aws", "azure", "gcp", "generic", "hetzner", "openstack")
)


def may(
    admin: Caller, user: str, verb: str, resource: str, *, namespace: str = "", name: str = ""
) -> bool:
    """Ask whether a user, or a group after a `@`, may do something.

    Args:
        admin: who asks.
        user: a name, or `@` and the name of a group.
        verb: as in a role.
        resource: group and resource, with a subresource after a further slash.
        namespace: empty for everywhere.
        name: of one object.
    """
    group, _, rest = resource.partition("/")
    kind, _, subresource = rest.partition("/")
    attributes = {
        "group": group,
        "resource": kind,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
        "name": name,
    }
    groups = ["system:authenticated", *([user[1:]] if user.startswith("@") else [])]
    spec: dict[str, Any] = {"user": user, "groups": groups, "resourceAttributes": attributes}
    answer = admin.create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
    )
    assert answer.ok, answer.message
    return bool(answer.body["status"]["allowed"])


@pytest.fixture(scope="module")
def aggregated(deployed: ControlPlane) -> Caller:
    """Wait until the aggregated roles hold our rules."""
    admin = Caller(deployed.kubeconfig)
    for role in ("crossplane", "view", "edit", "admin"):
        wait_until(
            partial(_holds_our_rules, admin, role),
            timeout_s=AGGREGATED_TIMEOUT_S,
            what=f"ClusterRole {role} holds our rules",
        )
    return admin


def _holds_our_rules(admin: Caller, role: str) -> bool:
    answer = admin.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}")
    return names.GROUP in str(answer.body.get("rules"))


@pytest.mark.parametrize("verb", [*READ, *WRITE])
def test_crossplane_does_everything_with_records(aggregated: Caller, verb: str) -> None:
    assert may(aggregated, CROSSPLANE, verb, RECORDS)


@pytest.mark.parametrize(("verb", "resource"), list(product(READ, CATALOG)))
def test_crossplane_reads_what_the_function_requires(
    aggregated: Caller, verb: str, resource: str
) -> None:
    assert may(aggregated, CROSSPLANE, verb, resource)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *product(CHANGE, [f"{RECORDS}/status"]),
        *product(WRITE, CATALOG),
        *product([*READ, *WRITE], TENANCY),
    ],
)
def test_crossplane_does_not(aggregated: Caller, verb: str, resource: str) -> None:
    assert not may(aggregated, CROSSPLANE, verb, resource)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *product([*READ, *CHANGE], [RECORDS]),
        *product(["get", *CHANGE], [f"{RECORDS}/status"]),
        ("update", f"{RECORDS}/finalizers"),
        *product(READ, [XRS, *CATALOG, *TENANCY, XRD, CRD, POLICIES, BINDINGS]),
        *product(["get", *CHANGE], [f"{kind}/status" for kind in (*CATALOG, *TENANCY)]),
        *product(["get", "list", "patch", "delete"], [SUBSTRATE]),
        *product(["get", "create", "patch", "delete"], ["/secrets", *PROVIDER_CONFIGS]),
        *product([*READ, "create", "patch", "delete"], ["/namespaces"]),
        *product(["create", "patch"], ["/events", "events.k8s.io/events"]),
        ("patch", XRD),
        ("create", "authentication.k8s.io/tokenreviews"),
        ("create", "authorization.k8s.io/subjectaccessreviews"),
    ],
)
def test_reconciler_may(aggregated: Caller, verb: str, resource: str) -> None:
    assert may(aggregated, RECONCILER, verb, resource)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *product(["create", "delete", "deletecollection"], [RECORDS]),
        *product(WRITE, [XRS, *CATALOG, *TENANCY]),
        *product(["create", "update", "deletecollection"], [SUBSTRATE]),
        *product(["list", "watch", "update", "deletecollection"], ["/secrets"]),
        *product(["create", "update", "delete"], [XRD, CRD]),
        ("patch", CRD),
        *product(WRITE, [POLICIES, BINDINGS, "rbac.authorization.k8s.io/clusterroles"]),
        *product(["get", "create"], ["/pods", "/pods/exec", "/serviceaccounts/token"]),
        ("impersonate", "/users"),
    ],
)
def test_reconciler_may_not(aggregated: Caller, verb: str, resource: str) -> None:
    assert not may(aggregated, RECONCILER, verb, resource)


def test_reconciler_labels_our_definitions_alone(aggregated: Caller) -> None:
    ours = f"provisioningrecords.{names.GROUP}"
    foreign = "functions.pkg.crossplane.io"

    assert may(aggregated, RECONCILER, "patch", CRD, name=ours)
    assert not may(aggregated, RECONCILER, "patch", CRD, name=foreign)


def test_reconciler_keeps_leases_in_its_namespace_alone(aggregated: Caller) -> None:
    leases = "coordination.k8s.io/leases"

    for verb in ("get", "create", "patch", "update"):
        assert may(aggregated, RECONCILER, verb, leases, namespace="plexsphere-system")
        assert not may(aggregated, RECONCILER, verb, leases, namespace="kube-system")


def test_reconciler_gets_further_substrate_by_label(aggregated: Caller, place: Place) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    group = f"{place.name}.plexsphere.test"
    rule = {"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list", "patch", "delete"]}
    label = {f"{names.GROUP}/aggregate-to-reconciler": "true"}
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": place.name, "labels": label},
        "rules": [rule],
    }
    assert not may(aggregated, RECONCILER, "delete", f"{group}/machines")

    assert aggregated.create(roles, body).ok

    wait_until(
        lambda: may(aggregated, RECONCILER, "delete", f"{group}/machines"),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what="the reconciler's further rights",
    )
    assert aggregated.delete(f"{roles}/{place.name}").ok


def test_reconciler_works_under_its_own_token(aggregated: Caller, deployed: ControlPlane) -> None:
    kubeconfig = deployed.service_account_kubeconfig("plexsphere-system", "provisioning-broker")
    own = Caller(kubeconfig)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    answer = own.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)

    user = answer.body["status"]["userInfo"]
    assert user["username"] == RECONCILER
    assert "system:masters" not in user["groups"]
    assert own.get(f"/apis/{names.API_VERSION}/provisioningrecords").ok
    assert own.get("/api/v1/secrets").status == 403


def bind(place: Place, role: str) -> str:
    """Give a user of its own a role in a place, as a Project's tenants have it."""
    user = f"{role}-of-{place.name}"
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place.name}/rolebindings"
    assert place.admin.create(path, body).ok
    wait_until(
        lambda: may(place.admin, user, "get", RECORDS, namespace=place.name),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what=f"{user} has its role",
    )
    return user


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_tenant_reads_records_and_writes_none(aggregated: Caller, place: Place, role: str) -> None:
    user = bind(place, role)

    for verb in READ:
        assert may(aggregated, user, verb, RECORDS, namespace=place.name)
        assert may(aggregated, user, verb, XRS, namespace=place.name)
    for verb in WRITE:
        assert not may(aggregated, user, verb, RECORDS, namespace=place.name)
        assert not may(aggregated, user, verb, f"{RECORDS}/status", namespace=place.name)


@pytest.mark.parametrize("verb", WRITE)
def test_tenant_declares_with_edit_and_not_with_view(
    aggregated: Caller, place: Place, verb: str
) -> None:
    assert may(aggregated, bind(place, "edit"), verb, XRS, namespace=place.name)
    assert may(aggregated, bind(place, "admin"), verb, XRS, namespace=place.name)
    assert not may(aggregated, bind(place, "view"), verb, XRS, namespace=place.name)


@pytest.mark.parametrize("resource", [*CATALOG, *TENANCY])
def test_tenant_publishes_nothing(aggregated: Caller, place: Place, resource: str) -> None:
    user = bind(place, "admin")

    for verb in WRITE:
        assert not may(aggregated, user, verb, resource)


def test_break_glass_may_undo_a_stuck_teardown(aggregated: Caller) -> None:
    group = f"@{BREAK_GLASS}"

    for verb in ("patch", "delete"):
        for resource in (RECORDS, SUBSTRATE, "/namespaces"):
            assert may(aggregated, group, verb, resource)
    assert not may(aggregated, group, "get", "/secrets")
