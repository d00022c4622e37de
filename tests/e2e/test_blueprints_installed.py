"""The published blueprints, installed as a Configuration, from a manifest to Ready and back.

Crossplane pulls, resolves and composes; the managed resources are of the providers' own CRDs.
What stands in: the clouds (`fake_provider`), and the two other functions (`ready_function`)
unless `PATCH_AND_TRANSFORM` and `AUTO_READY` name them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from dev import facts
from dev.kube import RefusedError
from dev.packages import BLUEPRINTS, CONFIGURATION, Release, installed_name
from dev.stack import ROOT
from tests.e2e.blueprint_stack import BlueprintStack, definitions, dependencies
from tests.e2e.enrol_pool import deletion, held
from tests.e2e.enrol_world import LONG
from tests.e2e.fake_provider import INSTANCE, OBJECT, RELEASE, Providers, providers_client
from tests.e2e.packaged import PACKAGE_API
from tests.e2e.world import PROJECT, SUBSTRATE_API, Node, Object, condition_of, wait_for
from tests.render.published import EXAMPLES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@dataclass
class Published(Node):
    """A node from the example of a published blueprint."""

    slug: str = ""
    kind: str = ""
    further: Object = field(default_factory=dict)

    def apply(self) -> Published:
        text = (EXAMPLES / self.slug / "resource.yaml").read_text(encoding="utf-8")
        manifest: Object = yaml.safe_load(text)
        manifest["metadata"]["name"] = self.name
        manifest["spec"]["labels"] |= self.labels
        manifest["spec"]["parameters"] |= self.further
        self.cluster.apply(manifest)
        return self

    def assert_ordered(self, handle: str, *, registered: bool) -> None:
        """Assert that the mesh was done with before machine, managed resource or XR was touched."""
        told = self.facts(handle)
        out = facts.first(told, "mesh", "deregistered" if registered else "token revoked", handle)
        going = facts.first(told, "cloud", "delete-requested", handle)
        assert out is not None
        assert going is not None
        assert out.at < going.at
        plurals = (f"{self.kind.lower()}s", "objects", "instances")
        asked = [deletion(self.stack, plural, handle) for plural in plurals]
        assert self.stack.plane.audit_log is None or asked[0] is not None
        assert all(each is None or out.at < each for each in asked)

    def substrate(self, handle: str) -> Object | None:
        return self.cluster.get(SUBSTRATE_API, self.kind, handle, self.namespace)


@pytest.fixture(scope="module")
def stack() -> Iterator[BlueprintStack]:
    (ROOT / ".run").mkdir(exist_ok=True)
    run_dir = Path(tempfile.mkdtemp(prefix="e2e-blueprints-", dir=ROOT / ".run"))
    lines: list[str] = []
    with BlueprintStack(run_dir, report=lines.append) as running:
        cluster = running.plane.cluster
        running.plane.apply(
            ROOT / "example/platform/tenancy.yaml",
            EXAMPLES / "clouds.yaml",
            *sorted(EXAMPLES.glob("*/blueprint.yaml")),
        )
        wait_for(lambda: cluster.get("v1", "Namespace", PROJECT), "the namespace")
        with providers_client(running.plane) as client, Providers(client, PROJECT).running():
            yield running


def _healthy(stack: BlueprintStack, kind: str, name: str) -> bool:
    found = stack.plane.cluster.get(PACKAGE_API, kind, name)
    return all(
        condition_of(found, each).get("status") == "True" for each in ("Installed", "Healthy")
    )


def test_the_second_configuration_brings_what_it_depends_on(stack: BlueprintStack) -> None:
    for package in (CONFIGURATION, BLUEPRINTS):
        name = Release().installed_name(package)
        wait_for(lambda name=name: _healthy(stack, "Configuration", name), f"{name} healthy")  # type: ignore[misc]  # mypy cannot type a default in a lambda
    for dependency in dependencies():
        name = installed_name(dependency["package"])
        wait_for(lambda name=name: _healthy(stack, "Function", name), f"{name} healthy")  # type: ignore[misc]  # mypy cannot type a default in a lambda
        found = stack.plane.cluster.get(PACKAGE_API, "Function", name)
        assert found is not None
        assert found["spec"]["package"] == f"{dependency['package']}:{dependency['version']}"
    assert len(definitions()) == 6
    assert all(stack.is_established(name) for name in definitions())


KINDS = {"generic-vm": "XGenericVM", "aws-ec2-instance": "XAWSEC2Instance"}
MANAGED = {"generic-vm": OBJECT, "aws-ec2-instance": INSTANCE}
CONFIGS = {OBJECT[0]: OBJECT[0], INSTANCE[0]: "aws.m.upbound.io/v1beta1"}
"""By version of a managed resource: that of its provider's ProviderConfig."""

WHOLE = [(slug, propagation) for slug in KINDS for propagation in ("Background", "Foreground")]
CASES = WHOLE if LONG else [WHOLE[0], WHOLE[3]]


@pytest.fixture(scope="module")
def nodes(stack: BlueprintStack) -> dict[tuple[str, str], Published]:
    """Make the nodes of all cases at once."""
    return {
        (slug, how): Published(stack, f"{slug}-{how}".lower(), slug=slug, kind=KINDS[slug]).apply()
        for slug, how in CASES
    }


@pytest.mark.parametrize(("slug", "propagation"), CASES)
def test_a_machine_of_a_published_blueprint_enrols_and_leaves_in_order(
    nodes: dict[tuple[str, str], Published], slug: str, propagation: str
) -> None:
    node, managed = nodes[slug, propagation], MANAGED[slug]

    handle = node.until_ready()

    machine, resource = node.machine(handle), node.cluster.get(*managed, handle, node.namespace)
    assert machine is not None
    assert machine["spec"]["forProvider"]["userData"].startswith("#cloud-config")
    _assert_held(node, managed, handle)
    _assert_as_declared(node, resource, handle)
    config = _provider_config(node, resource)
    assert held(config)
    node.delete(propagation=propagation)
    node.until_gone(handle)
    node.assert_ordered(handle, registered=True)
    node.assert_created_once(handle)
    node.assert_nothing_left(handle)
    assert _below(node, handle) == []
    if not LONG:  # no other node needs it
        wait_for(lambda: _provider_config(node, resource) is None, "its ProviderConfig gone")


def _provider_config(node: Node, resource: Object | None) -> Object | None:
    """Return what a managed resource says it is made with; its provider reads it there."""
    assert resource is not None
    reference = resource["spec"]["providerConfigRef"]
    api = CONFIGS[resource["apiVersion"]]
    return node.cluster.get(api, reference["kind"], reference["name"], node.namespace)


def _assert_held(node: Node, managed: tuple[str, str], handle: str) -> None:
    substrate = node.substrate(handle)
    assert substrate is not None
    for api, kind in ((SUBSTRATE_API, substrate["kind"]), managed):
        with pytest.raises(RefusedError) as refused:
            node.cluster.delete(api, kind, handle, node.namespace)
        assert refused.value.status == 403
    node.assert_untouched(handle)


def _assert_as_declared(node: Published, resource: Object | None, handle: str) -> None:
    """Assert that what a user declared arrived in the provider's own fields."""
    assert resource is not None
    given = resource["spec"]["forProvider"]
    if node.slug == "aws-ec2-instance":
        assert (given["region"], given["ami"]) == ("eu-central-1", "ami-0123456789abcdef0")
        assert given["tags"].items() >= {"team": "checkout"}.items()
        assert resource["spec"]["providerConfigRef"] == {
            "kind": "ProviderConfig",
            "name": "aws-main",
        }
        return
    template = given["manifest"]["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {"topology.kubernetes.io/region": "eu-central-1"}
    assert template["volumes"][1]["cloudInitNoCloud"]["secretRef"]["name"] == f"{handle}-user-data"
    reference = {"kind": "ProviderConfig", "name": "generic-main"}
    assert resource["spec"]["providerConfigRef"] == reference


def _below(node: Node, handle: str) -> list[str]:
    """Name what is left of the managed resources and their Secrets."""
    kinds = (OBJECT, INSTANCE, RELEASE, ("v1", "Secret"))
    return [
        f"{kind} {item['metadata']['name']}"
        for api, kind in kinds
        for item in node.cluster.list(api, kind, node.namespace)
        if item["metadata"]["name"].startswith(handle)
    ]


def test_a_chart_gets_the_token_by_a_secret_alone_and_loses_it_first(stack: BlueprintStack) -> None:
    node = Published(stack, "chart", slug="kubernetes-helm", kind="XKubernetesHelm").apply()
    handle = node.until_enrolling()
    release = node.cluster.get(*RELEASE, handle, node.namespace)
    secrets = [name for name in _below(node, handle) if name.startswith("Secret")]
    assert release is not None
    assert len(secrets) == 1

    node.delete(propagation="Background")

    node.until_gone(handle)
    node.assert_aggregate_deleted(handle)
    assert _below(node, handle) == []


def test_what_its_provider_refuses_for_good_fails_and_tells_no_user_data(
    stack: BlueprintStack,
) -> None:
    labels = {"demo-create": "fail"}
    slug = "aws-ec2-instance"
    node = Published(stack, "refused", slug=slug, kind=KINDS[slug], labels=labels).apply()
    wait_for(lambda: node.phase() == "Failed", "it failed", explain=node.explain)
    wait_for(
        lambda: condition_of(node.xr(), "ProvisioningFailed").get("reason") == "Refused",
        "its XR says why",
        explain=node.explain,
    )

    failed = condition_of(node.xr(), "ProvisioningFailed")
    assert failed["status"] == "True"
    assert failed["message"].startswith("api error InvalidParameterValue: t9.huge is no type")
    for told in (node.xr(), node.record()):
        assert "cloud-config" not in str(told)
        assert "plexd up" not in str(told)
    handle = node.handle()
    node.delete(propagation="Background")
    node.until_gone(handle)


@pytest.mark.parametrize(
    ("slug", "name", "value"),
    [
        ("kubernetes-daemonset", "namespace", "kube-system"),
        ("kubernetes-helm", "namespace", "kube-system"),
        ("kubernetes-helm", "chartRepository", "https://charts.evil.example"),
    ],
)
def test_a_tenant_chooses_neither_namespace_nor_chart(
    stack: BlueprintStack, slug: str, name: str, value: str
) -> None:
    node = Published(stack, f"chooses-{slug}-{name}".lower(), slug=slug, further={name: value})

    node.apply()

    told = wait_for(
        lambda: _refused(condition_of(node.xr(), "Admitted")), "refused", explain=node.explain
    )
    assert told["message"].startswith(f"spec.parameters.{name}: is a constant")
    assert node.record() is None
    node.delete(propagation="Background")


def _refused(condition: Object) -> Object | None:
    return condition if condition.get("reason") == "InvalidParameters" else None


def test_no_blueprint_goes_into_a_namespace_of_kubernetes(stack: BlueprintStack) -> None:
    for kind in ("XKubernetesDaemonSet", "XKubernetesHelm", "XGenericVM"):
        body = {
            "apiVersion": SUBSTRATE_API,
            "kind": kind,
            "metadata": {"name": "direct", "namespace": PROJECT},
            "spec": {"parameters": {"namespace": "kube-system"}},
        }
        with pytest.raises(RefusedError, match="must be a namespace of its own"):
            stack.plane.apply(body)
