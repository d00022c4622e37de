"""What is refused while a node is alive, what a namespace's deletion does, and what would
happen without the policies."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubernetes.client.exceptions import ApiException

from dev import facts
from dev.kube import Cluster, RefusedError
from dev.stack import RECONCILER_ACCOUNT, ROOT, Stack
from tests.e2e.conftest import PIPELINE_IDS, PIPELINES, MakeNode
from tests.e2e.world import API, CLOUD_API, SUBSTRATE_API, Node, wait_for

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


@pytest.fixture(scope="module", params=PIPELINES, ids=PIPELINE_IDS)
def pipeline(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["registered", "never-came"])
def settled(stack: Stack, request: pytest.FixtureRequest, pipeline: str) -> Iterator[Node]:
    registered = bool(request.param)
    labels = {} if registered else {"demo-boot": "never"}
    name = f"protected-{request.param}-{pipeline}".lower()
    node = Node(stack, name, labels=labels, composition=pipeline).apply()
    handle = node.until_ready() if registered else node.until_enrolling()
    yield node
    node.delete(propagation="Background")
    node.until_gone(handle)


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


@pytest.fixture
def other_project(stack: Stack) -> Callable[[str], str]:
    """Make a Project of its own, because its namespace will go."""

    def make(identity: str) -> str:
        name = f"project-{identity}"
        credential = stack.plane.cluster.get(API, "CloudCredential", "demo-main")
        assert credential is not None
        projects = sorted({*credential["spec"]["projects"], name})
        stack.plane.apply(
            {
                "apiVersion": API,
                "kind": "Project",
                "metadata": {"name": name},
                "spec": {"id": identity, "domainRef": {"name": "acme"}},
            },
            {
                "apiVersion": API,
                "kind": "CloudCredential",
                "metadata": {"name": "demo-main"},
                "spec": {**credential["spec"], "projects": projects},
            },
        )
        namespace = f"plexsphere-project-{identity}"
        wait_for(lambda: stack.plane.cluster.get("v1", "Namespace", namespace), namespace)
        return namespace

    return make


@pytest.mark.parametrize("registered", [True, False], ids=["registered", "never-came"])
def test_a_namespace_is_refused_with_its_count_and_keeps_the_order_without_its_label(
    stack: Stack,
    make_node: MakeNode,
    other_project: Callable[[str], str],
    pipeline: str,
    *,
    registered: bool,
) -> None:
    namespace = other_project(str(uuid.uuid4()))
    labels = {} if registered else {"demo-boot": "never"}
    node = make_node(namespace=namespace, labels=labels, composition=pipeline).apply()
    handle = node.until_ready() if registered else node.until_enrolling()
    cluster = stack.plane.cluster

    with pytest.raises(RefusedError, match="it holds 1 ProvisioningRecords") as refused:
        cluster.delete("v1", "Namespace", namespace)
    assert refused.value.status == 403

    _as_reconciler_take_label_off_and_delete(stack, namespace)

    wait_for(lambda: cluster.get("v1", "Namespace", namespace) is None, "the namespace gone")
    node.assert_ordered(handle, registered=registered)
    node.assert_nothing_left(handle)


def _as_reconciler_take_label_off_and_delete(stack: Stack, namespace: str) -> None:
    kubeconfig = stack.plane.service_account_kubeconfig(*RECONCILER_ACCOUNT)
    with tempfile.TemporaryDirectory() as cache, Cluster(kubeconfig, Path(cache)) as reconciler:
        found = reconciler.get("v1", "Namespace", namespace)
        assert found is not None
        resource = reconciler.resource("v1", "Namespace")
        body = {"metadata": {"labels": {"provisioning.plexsphere.com/hold": None}}}
        resource.patch(name=namespace, body=body, content_type="application/merge-patch+json")
    stack.plane.cluster.delete("v1", "Namespace", namespace)


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
