"""What is refused while a node is alive, what a namespace's deletion does, and what would
happen without the policies.

Each refusal by itself is shown by `tests/e2e/deploy`; here are those that a living node leans on,
on what Crossplane made.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from itertools import product

import pytest
from kubernetes.client.exceptions import ApiException

from dev import facts
from dev.kube import Cluster, RefusedError
from dev.stack import ROOT, Stack
from tests.e2e import dropping
from tests.e2e.at_once import Case, Outcome, at_once
from tests.e2e.conftest import PIPELINES, MakeNode
from tests.e2e.world import (
    API,
    CLOUD_API,
    SUBSTRATE_API,
    Node,
    let_go_of_namespace,
    namespace_went,
    wait_for,
)
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

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


CASES = [
    Case(pipeline=pipeline, registered=registered)
    for pipeline, registered in product(PIPELINES, (True, False))
]


@pytest.fixture(scope="module")
def lives(stack: Stack) -> Iterator[Outcome[Case]]:
    identities = {case: str(uuid.uuid4()) for case in CASES}
    _other_projects(stack, identities)
    with at_once(CASES, lambda case: _live(stack, identities[case], case)) as outcome:
        yield outcome


def _live(stack: Stack, identity: str, case: Case) -> None:
    cluster = stack.plane.cluster
    namespace = f"plexsphere-project-{identity}"
    wait_for(lambda: cluster.get("v1", "Namespace", namespace), namespace)
    node = case.node(stack, "inside", namespace=namespace)
    handle = case.settled(node)

    for api, kind in ((SUBSTRATE_API, "XGenericVM"), (CLOUD_API, "Machine")):
        _assert_not_deleted(node, api, kind)
        _assert_not_deleted_by_collection(node, api, kind)
    _assert_nobody_has_it_dropped(node, handle)
    _assert_definitions_stay(cluster)
    with pytest.raises(RefusedError, match="it holds 1 ProvisioningRecords") as refused:
        cluster.delete("v1", "Namespace", namespace)
    assert refused.value.status == 403
    node.assert_untouched(handle)

    wait_for(lambda: _asked_to_go(stack, namespace), "the namespace asked to go")

    wait_for(lambda: namespace_went(stack, namespace), "the namespace gone")
    node.assert_ordered(handle, registered=case.registered)
    node.assert_nothing_left(handle)


def _asked_to_go(stack: Stack, namespace: str) -> bool:
    """Delete a namespace without its label, which the reconciler puts back now and then."""
    let_go_of_namespace(stack, namespace)
    with contextlib.suppress(RefusedError):
        stack.plane.cluster.delete("v1", "Namespace", namespace)
        return True
    return False


def _assert_not_deleted(node: Node, api: str, kind: str) -> None:
    for propagation in ("Background", "Foreground", "Orphan"):
        with pytest.raises(RefusedError) as refused:
            node.cluster.delete(api, kind, node.handle(), node.namespace, propagation=propagation)
        assert refused.value.status == 403
        assert "ProvisionedResource" in str(refused.value)


def _assert_not_deleted_by_collection(node: Node, api: str, kind: str) -> None:
    with pytest.raises(ApiException, match="Forbidden"):
        node.cluster.resource(api, kind).delete(
            namespace=node.namespace, label_selector="crossplane.io/composite"
        )


def _assert_nobody_has_it_dropped(node: Node, handle: str) -> None:
    """Assert that each try is refused, and that nothing of the node went or came beside it."""
    before = node.machine(handle)
    assert before is not None

    assert dropping.assert_refused(node, handle) == len(dropping.CHANGES)

    after = node.machine(handle)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    node.assert_created_once(handle)


def _assert_definitions_stay(cluster: Cluster) -> None:
    for api, kind, name in HELD_DEFINITIONS:
        with pytest.raises(RefusedError, match="delete the objects first") as refused:
            cluster.delete(api, kind, name)
        assert refused.value.status == 403


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_of_a_living_node_is_deleted_and_its_namespace_keeps_the_order_without_its_label(
    lives: Outcome[Case], case: Case
) -> None:
    lives(case)


Alive = list[tuple[Node, str]]
"""Nodes that were Ready, each with its handle."""


@pytest.fixture
def bare(stack: Stack) -> Iterator[Alive]:
    """Nodes of a test that takes policies and reconciler away: both come back, and they go."""
    nodes: Alive = []
    yield nodes
    stack.plane.apply(ROOT / "deploy/policies")
    wait_for(lambda: not _deletable(stack.plane.cluster), "the policies to be in force")
    stack.start_reconciler()
    for node, handle in nodes:
        _until_gone(node, handle)


def _until_gone(node: Node, handle: str) -> None:
    wait_for(lambda: node.record() is None, "the record gone", explain=node.explain)
    wait_for(lambda: node.machine(handle) is None, "the machine gone")


def test_without_the_policies_the_order_breaks(
    stack: Stack, make_node: MakeNode, bare: Alive
) -> None:
    """The negative control: what the policies are there for."""
    nodes = [make_node().apply(), make_node().apply()]
    bare += [(node, node.until_ready()) for node in nodes]
    stack.kill_reconciler()
    _take_policies_away(stack)
    made(Kind.POLICIES_GONE)

    for node, propagation in zip(nodes, ("Background", "Foreground"), strict=True):
        node.delete(propagation=propagation)

    for node, handle in bare:
        _assert_taken_alive(node, handle)


def _assert_taken_alive(node: Node, handle: str) -> None:
    wait_for(
        lambda: facts.first(node.facts(handle), "cloud", "delete-requested", handle),
        "the machine taken while its node is alive",
    )
    assert facts.first(node.facts(handle), "mesh", "deregistered", handle) is None


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
