"""What is refused while a node is alive, what a namespace's deletion does, and what would
happen without the policies."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import pytest
from kubernetes.client.exceptions import ApiException

from dev import facts
from dev.kube import Cluster, RefusedError
from dev.stack import ROOT, Stack
from tests.e2e.at_once import Case, Outcome, at_once
from tests.e2e.conftest import PIPELINES
from tests.e2e.world import (
    API,
    CLOUD_API,
    SUBSTRATE_API,
    Node,
    let_go_of_namespace,
    namespace_went,
    wait_for,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

CRD_API = "apiextensions.k8s.io/v1"
XRD_API = "apiextensions.crossplane.io/v2"
HELD_DEFINITIONS = [
    (XRD_API, "CompositeResourceDefinition", "provisionedresources.provisioning.plexsphere.com"),
    (XRD_API, "CompositeResourceDefinition", "xgenericvms.blueprints.plexsphere.com"),
    (CRD_API, "CustomResourceDefinition", "provisionedresources.provisioning.plexsphere.com"),
    (CRD_API, "CustomResourceDefinition", "xgenericvms.blueprints.plexsphere.com"),
    (CRD_API, "CustomResourceDefinition", "provisioningrecords.provisioning.plexsphere.com"),
    (CRD_API, "CustomResourceDefinition", "blueprintversions.provisioning.plexsphere.com"),
    (CRD_API, "CustomResourceDefinition", "machines.cloud.demo.plexsphere.com"),
]


def _delete_all(cluster: Cluster, api: str, kind: str, namespace: str) -> None:
    cluster.resource(api, kind).delete(
        namespace=namespace, label_selector="crossplane.io/composite"
    )


CASES = [
    Case(pipeline=pipeline, registered=registered)
    for pipeline, registered in product(PIPELINES, (True, False))
]


@pytest.fixture(scope="module")
def all_settled(stack: Stack) -> Iterator[dict[Case, Node]]:
    """A node of each case, as far as it goes."""
    nodes = {case: case.node(stack, "protected") for case in CASES}
    handles = {case: case.settled(node) for case, node in nodes.items()}
    yield nodes
    for node in nodes.values():
        node.delete(propagation="Background")
    for case, node in nodes.items():
        node.until_gone(handles[case])


@pytest.fixture(params=CASES, ids=str)
def settled(request: pytest.FixtureRequest, all_settled: dict[Case, Node]) -> Node:
    return all_settled[request.param]


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
@pytest.mark.parametrize(("api", "kind"), [(SUBSTRATE_API, "XGenericVM"), (CLOUD_API, "Machine")])
def test_the_substrate_and_what_is_below_it_cannot_be_deleted_directly(
    settled: Node, api: str, kind: str, propagation: str
) -> None:
    handle = settled.handle()

    with pytest.raises(RefusedError) as refused:
        settled.cluster.delete(api, kind, handle, settled.namespace, propagation=propagation)

    assert refused.value.status == 403
    assert "ProvisionedResource" in str(refused.value)
    assert settled.machine(handle) is not None


@pytest.mark.parametrize(("api", "kind"), [(SUBSTRATE_API, "XGenericVM"), (CLOUD_API, "Machine")])
def test_nor_by_collection(settled: Node, api: str, kind: str) -> None:
    handle = settled.handle()

    with pytest.raises(ApiException, match="Forbidden"):
        _delete_all(settled.cluster, api, kind, settled.namespace)

    found = settled.cluster.get(api, kind, handle, settled.namespace)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize(("api", "kind", "name"), HELD_DEFINITIONS)
def test_the_definitions_cannot_be_deleted(settled: Node, api: str, kind: str, name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        settled.cluster.delete(api, kind, name)

    assert refused.value.status == 403
    assert "delete the objects first" in str(refused.value)


def _other_projects(stack: Stack, identities: Mapping[Case, str]) -> None:
    """Make a Project for each case, because its namespace will go."""
    credential = stack.plane.cluster.get(API, "CloudCredential", "demo-main")
    assert credential is not None
    known = credential["spec"]["projects"]
    projects = sorted({*known, *(f"project-{identity}" for identity in identities.values())})
    made = [
        {
            "apiVersion": API,
            "kind": "Project",
            "metadata": {"name": f"project-{identity}"},
            "spec": {"id": identity, "domainRef": {"name": "acme"}},
        }
        for identity in identities.values()
    ]
    allowed = {
        "apiVersion": API,
        "kind": "CloudCredential",
        "metadata": {"name": "demo-main"},
        "spec": {**credential["spec"], "projects": projects},
    }
    stack.plane.apply(*made, allowed)


@pytest.fixture(scope="module")
def namespaces(stack: Stack) -> Iterator[Outcome]:
    identities = {case: str(uuid.uuid4()) for case in CASES}
    _other_projects(stack, identities)
    with at_once(CASES, lambda case: _delete_namespace(stack, identities[case], case)) as outcome:
        yield outcome


def _delete_namespace(stack: Stack, identity: str, case: Case) -> None:
    cluster = stack.plane.cluster
    namespace = f"plexsphere-project-{identity}"
    wait_for(lambda: cluster.get("v1", "Namespace", namespace), namespace)
    node = case.node(stack, "inside", namespace=namespace)
    handle = case.settled(node)

    with pytest.raises(RefusedError, match="it holds 1 ProvisioningRecords") as refused:
        cluster.delete("v1", "Namespace", namespace)
    assert refused.value.status == 403

    let_go_of_namespace(stack, namespace)
    cluster.delete("v1", "Namespace", namespace)

    wait_for(lambda: namespace_went(stack, namespace), "the namespace gone")
    node.assert_ordered(handle, registered=case.registered)
    node.assert_nothing_left(handle)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_namespace_is_refused_with_its_count_and_keeps_the_order_without_its_label(
    namespaces: Outcome, case: Case
) -> None:
    namespaces(case)


@pytest.fixture(scope="module")
def unprotected() -> Iterator[Stack]:
    run_dir = Path(tempfile.mkdtemp(prefix="e2e-bare-", dir=ROOT / ".run"))
    lines: list[str] = []
    with Stack(run_dir, report=lines.append) as running:
        running.plane.apply(ROOT / "example/platform")
        yield running


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_without_the_policies_the_order_breaks(unprotected: Stack, propagation: str) -> None:
    """The negative control: what the policies are there for."""
    node = Node(unprotected, f"bare-{propagation.lower()}").apply()
    handle = node.until_ready()
    _take_policies_away(unprotected)

    unprotected.kill_reconciler()
    node.delete(propagation=propagation)

    wait_for(
        lambda: facts.first(node.facts(handle), "cloud", "delete-requested", handle),
        "the machine taken while its node is alive",
    )
    assert facts.first(node.facts(handle), "mesh", "deregistered", handle) is None
    unprotected.plane.apply(ROOT / "deploy/policies")
    unprotected.start_reconciler()
    wait_for(lambda: node.record() is None, "the record gone", explain=node.explain)
    wait_for(lambda: node.machine(handle) is None, "the machine gone")


def _take_policies_away(stack: Stack) -> None:
    cluster = stack.plane.cluster
    kind = "ValidatingAdmissionPolicyBinding"
    api = "admissionregistration.k8s.io/v1"
    for binding in cluster.list(api, kind):
        cluster.delete(api, kind, binding["metadata"]["name"])

    wait_for(lambda: _deletable(cluster), "the policies to be out of force")


def _deletable(cluster: Cluster) -> bool:
    name = "blueprintversions.provisioning.plexsphere.com"
    definitions = cluster.resource(CRD_API, "CustomResourceDefinition")
    try:
        definitions.delete(name=name, body={"dryRun": ["All"]})
    except ApiException:
        return False
    return True
