"""Who may do what to our kinds, asked of a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from reconciler.adapters.kubernetes.namespaces import project_rights
from tests.e2e.deploy.identity import BREAK_GLASS, CROSSPLANE, RECONCILER, Caller, wait_until
from tests.e2e.deploy.place import Place
from tests.e2e.deploy.rights import AGGREGATED_TIMEOUT_S, RECORDS, bind, may

pytestmark = pytest.mark.e2e

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")
CHANGE = ("update", "patch")

XRS = f"{names.GROUP}/provisionedresources"
BLUEPRINTS = f"{names.GROUP}/blueprintversions"
CATALOG = (BLUEPRINTS, f"{names.GROUP}/clouds", f"{names.GROUP}/cloudcredentials")
TENANCY = (f"{names.GROUP}/domains", f"{names.GROUP}/projects")
SUBSTRATE = f"{names.BLUEPRINTS_GROUP}/xgenericvms"
XRD = "apiextensions.crossplane.io/compositeresourcedefinitions"
CRD = "apiextensions.k8s.io/customresourcedefinitions"
POLICIES = "admissionregistration.k8s.io/validatingadmissionpolicies"
BINDING = "rbac.authorization.k8s.io/rolebindings"
ROLES = "rbac.authorization.k8s.io/clusterroles"
BINDINGS = "admissionregistration.k8s.io/validatingadmissionpolicybindings"
PROVIDER_CONFIGS = tuple(
    f"{provider}.crossplane.io/providerconfigs"
    for provider in ("aws", "azure", "gcp", "generic", "hetzner", "openstack")
)


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


@pytest.fixture(scope="module")
def own_place(aggregated: Caller) -> Iterator[Place]:
    """A namespace in which the reconciler's account bound its role, as its code does."""
    place = Place(aggregated)
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place.name}/rolebindings"
    assert aggregated.as_user(RECONCILER).create(path, project_rights.manifest(held=False)).ok
    wait_until(
        lambda: may(aggregated, RECONCILER, "get", "/secrets", namespace=place.name),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what="the reconciler has its rights in a Project",
    )
    yield place
    place.clear()


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


NEEDED = [
    *product([*READ, "patch", "delete"], [RECORDS]),
    *product(["list", "watch"], [*CATALOG, *TENANCY]),
    ("get", f"{names.GROUP}/projects"),
    *product(["patch"], [f"{RECORDS}/status", f"{names.GROUP}/projects/status"]),
    ("get", XRS),
    *product(["get", "list", "patch", "delete"], [SUBSTRATE]),
    *product(["get", "create", "patch"], ["/namespaces"]),
    ("create", BINDING),
    ("create", "/events"),
    ("create", "authorization.k8s.io/selfsubjectaccessreviews"),
    ("create", "authorization.k8s.io/subjectaccessreviews"),
    ("create", "authentication.k8s.io/tokenreviews"),
    ("get", POLICIES),
    ("list", BINDINGS),
]
"""What the calls in `reconciler/adapters/kubernetes` need everywhere, and nothing else."""

IN_PROJECTS = [
    *product(["get", "create", "patch", "delete"], ["/secrets", *PROVIDER_CONFIGS]),
    *product(["get", "create", "patch", "delete"], ["external-secrets.io/externalsecrets"]),
]
"""What they need in Projects' namespaces besides."""

BY_NAME = [
    *product(["get", "patch", "delete"], [(BINDING, "provisioning-broker")]),
    ("bind", (ROLES, "provisioning-broker-project")),
]
"""What they need of one object, wherever it is."""

TEMPTING = (
    *(RECORDS, f"{RECORDS}/status", f"{RECORDS}/finalizers"),
    *(XRS, *CATALOG, *TENANCY),
    *(f"{kind}/status" for kind in (XRS, *CATALOG, *TENANCY)),
    *(SUBSTRATE, *PROVIDER_CONFIGS, XRD, CRD, POLICIES, BINDINGS),
    *("/secrets", "/namespaces", "/events", "/pods", "/pods/exec", "/serviceaccounts/token"),
    *("external-secrets.io/externalsecrets", "coordination.k8s.io/leases"),
    *(ROLES, "rbac.authorization.k8s.io/clusterrolebindings", "authentication.k8s.io/tokenreviews"),
    *(BINDING, "rbac.authorization.k8s.io/roles"),
    *(f"authorization.k8s.io/{kind}reviews" for kind in ("subjectaccess", "selfsubjectaccess")),
)


@pytest.mark.parametrize(("verb", "resource"), NEEDED)
def test_reconciler_may_what_its_code_calls(aggregated: Caller, verb: str, resource: str) -> None:
    assert may(aggregated, RECONCILER, verb, resource)


@pytest.mark.parametrize("resource", TEMPTING)
def test_reconciler_may_nothing_else(aggregated: Caller, resource: str) -> None:
    verbs = (*READ, *WRITE, "bind", "escalate")
    allowed = [verb for verb in verbs if may(aggregated, RECONCILER, verb, resource)]

    assert sorted(allowed) == sorted(verb for verb, needed in NEEDED if needed == resource)


@pytest.mark.parametrize(("verb", "what"), BY_NAME)
def test_reconciler_may_some_things_by_name_alone(
    aggregated: Caller, verb: str, what: tuple[str, str]
) -> None:
    resource, name = what

    assert may(aggregated, RECONCILER, verb, resource, name=name)
    assert not may(aggregated, RECONCILER, verb, resource, name="another")
    assert not may(aggregated, RECONCILER, verb, resource)


@pytest.mark.parametrize("resource", TEMPTING)
def test_in_a_project_it_may_what_its_role_there_says(
    aggregated: Caller, own_place: Place, resource: str
) -> None:
    allowed = [
        verb
        for verb in (*READ, *WRITE, "bind", "escalate")
        if may(aggregated, RECONCILER, verb, resource, namespace=own_place.name)
    ]

    needed = [verb for verb, asked in (*NEEDED, *IN_PROJECTS) if asked == resource]
    assert sorted(allowed) == sorted(needed)


def test_reconciler_acts_for_nobody_else(aggregated: Caller) -> None:
    assert not may(aggregated, RECONCILER, "impersonate", "/users")


@pytest.mark.parametrize("namespace", ["plexsphere-system", "kube-system"])
def test_reconciler_keeps_no_leases(aggregated: Caller, namespace: str) -> None:
    for verb in ("get", "create", "patch", "update"):
        leases = "coordination.k8s.io/leases"
        assert not may(aggregated, RECONCILER, verb, leases, namespace=namespace)


@pytest.mark.parametrize(
    ("label", "in_project"), [("aggregate-to-reconciler", False), ("aggregate-to-project", True)]
)
def test_reconciler_gets_further_kinds_by_label(
    aggregated: Caller, own_place: Place, place: Place, label: str, *, in_project: bool
) -> None:
    where = own_place.name if in_project else ""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    group = f"{label}-{place.name[-12:]}.plexsphere.test"
    rule = {"apiGroups": [group], "resources": ["*"], "verbs": ["get", "patch", "delete"]}
    labels = {f"{names.GROUP}/{label}": "true"}
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": place.name, "labels": labels},
        "rules": [rule],
    }
    assert not may(aggregated, RECONCILER, "delete", f"{group}/machines", namespace=where)

    assert aggregated.create(roles, body).ok

    wait_until(
        lambda: may(aggregated, RECONCILER, "delete", f"{group}/machines", namespace=where),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what="the reconciler's further rights",
    )
    everywhere = may(aggregated, RECONCILER, "delete", f"{group}/machines")
    assert aggregated.delete(f"{roles}/{place.name}").ok
    assert everywhere is not in_project


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
