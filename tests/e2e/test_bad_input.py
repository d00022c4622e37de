"""Bad input gets a condition that names field and rule, makes nothing, and can be mended."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.kube import RefusedError
from dev.stack import Stack
from tests.e2e.conftest import MakeNode
from tests.e2e.world import API, Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def _refused(node: Node, reason: str, field: str) -> None:
    condition = wait_for(
        lambda: _matching(condition_of(node.xr(), "Admitted"), reason),
        f"Admitted=False/{reason}",
        explain=lambda: f"{node.explain()} {condition_of(node.xr(), 'Admitted')}",
    )
    assert field in condition["message"]
    assert condition_of(node.xr(), "Ready").get("status") == "False"
    assert node.handle() == ""


def _matching(condition: dict[str, Any], reason: str) -> dict[str, Any] | None:
    matches = condition.get("status") == "False" and condition.get("reason") == reason
    return condition if matches else None


@pytest.fixture
def refused(make_node: MakeNode) -> Iterator[Node]:
    node = make_node()
    yield node
    if node.xr() is not None:
        handle = node.handle()
        node.delete(propagation="Background")
        node.until_gone(handle or "pr-none")


def test_a_constant_is_not_a_tenants_to_set(stack: Stack, refused: Node) -> None:
    _publish(stack, "with-constant", constants=[{"name": "namespace", "value": "machines"}])
    refused.blueprint = "with-constant"
    refused.parameters = {"region": "nbg1", "namespace": "kube-system"}

    refused.apply()

    _refused(refused, "InvalidParameters", "spec.parameters.namespace: is a constant")
    assert refused.record() is None


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "spec.parameters.region: is required"),
        ({"region": 7}, "spec.parameters.region: must be a string"),
        ({"region": "nbg1", "diskSizeGb": "40"}, "spec.parameters.diskSizeGb: must be an integer"),
        ({"region": "nbg1", "diskSizeGb": 1.5}, "spec.parameters.diskSizeGb: must be an integer"),
        ({"region": "nbg1", "colour": "red"}, "spec.parameters.colour: is not a parameter"),
        ({"region": "nbg1", "helmValues": {}}, "spec.parameters.helmValues: is reserved"),
        ({"region": "nbg1", "providerSecret": {}}, "spec.parameters.providerSecret: is reserved"),
    ],
)
def test_a_bad_parameter_is_named_with_its_rule(
    refused: Node, parameters: dict[str, Any], field: str
) -> None:
    refused.parameters = parameters

    refused.apply()

    _refused(refused, "InvalidParameters", field)
    assert refused.record() is None


def test_mending_a_parameter_lets_it_go_on(make_node: MakeNode) -> None:
    node = make_node(parameters={})
    node.apply()
    wait_for(lambda: _matching(condition_of(node.xr(), "Admitted"), "InvalidParameters"), "refusal")

    node.parameters = {"region": "nbg1"}
    node.apply()

    handle = node.until_ready()
    node.delete(propagation="Background")
    node.until_gone(handle)


def test_a_blueprint_made_again_with_another_default_changes_no_machine(
    stack: Stack, make_node: MakeNode
) -> None:
    _publish(stack, "made-again")
    node = make_node(blueprint="made-again")
    node.apply()
    handle = node.until_ready()
    before = (node.substrate(handle) or {})["spec"]["parameters"]
    assert before == {"region": "nbg1", "instanceType": "standard-2", "diskSizeGb": 40}

    stack.plane.cluster.delete(API, "BlueprintVersion", "made-again")
    _publish(stack, "made-again", parameters=_with_default("instanceType", "standard-8"))
    node.labels = {"seen": "yes"}
    node.apply()

    wait_for(
        lambda: (node.substrate(handle) or {})["spec"].get("cloudTags", {}).get("seen"),
        "a run that read the blueprint that was made again",
        explain=node.explain,
    )
    assert (node.substrate(handle) or {})["spec"]["parameters"] == before
    node.parameters = {"region": "nbg1", "diskSizeGb": 80}
    node.apply()
    told = wait_for(
        lambda: _matching(condition_of(node.xr(), "Admitted"), "Immutable"),
        "the edit refused",
        explain=node.explain,
    )
    assert told["message"].startswith("spec.parameters.diskSizeGb: cannot change")
    assert (node.substrate(handle) or {})["spec"]["parameters"] == before
    node.assert_created_once(handle)
    node.delete(propagation="Background")
    node.until_gone(handle)


def _with_default(name: str, default: str) -> list[dict[str, Any]]:
    return [
        {"name": "region", "type": "string", "required": True},
        {"name": name, "type": "string", "default": default},
        {"name": "diskSizeGb", "type": "integer", "default": 40},
    ]


def test_an_unknown_blueprint_is_waited_for(stack: Stack, refused: Node) -> None:
    refused.blueprint = "from-tomorrow"

    refused.apply()

    _refused(refused, "BlueprintNotFound", "spec.blueprintRef")
    assert refused.record() is None
    _publish(stack, "from-tomorrow")
    handle = refused.until_ready()
    refused.delete(propagation="Background")
    refused.until_gone(handle)


def test_a_blueprint_that_says_it_is_cluster_scoped_is_not_published(stack: Stack) -> None:
    xr = {
        "apiVersion": "blueprints.plexsphere.com/v1alpha1",
        "kind": "XCluster",
        "scope": "Cluster",
    }

    with pytest.raises(RefusedError, match=r"spec\.xr\.scope: .*Cluster is refused"):
        _publish(stack, "cluster-scoped", xr=xr)


def test_a_blueprint_whose_kind_is_cluster_scoped_is_refused(stack: Stack, refused: Node) -> None:
    _publish(stack, "cluster-kind", xr={"apiVersion": API, "kind": "Cloud"})
    refused.blueprint = "cluster-kind"

    refused.apply()

    _refused(refused, "UnsupportedBlueprint", "is cluster-scoped")


def test_a_blueprint_whose_xrd_is_absent_is_refused(stack: Stack, refused: Node) -> None:
    xr = {"apiVersion": "blueprints.plexsphere.com/v1alpha1", "kind": "XNowhere"}
    _publish(stack, "nowhere", xr=xr)
    refused.blueprint = "nowhere"

    refused.apply()

    _refused(
        refused, "UnsupportedBlueprint", "is not served; check that its CRD or XRD is established"
    )


def test_a_credential_of_another_project_is_refused_until_it_is_allowed(
    stack: Stack, refused: Node
) -> None:
    _publish(stack, "own-config", providerConfig={"kind": "ProviderConfig", "name": "foreign"})
    _credential(stack, projects=["somebody-else"])
    refused.blueprint, refused.credential = "own-config", "foreign"

    refused.apply()

    _refused(refused, "CredentialNotAllowed", "spec.cloudCredentialRef.name")
    _credential(stack, projects=["shop"])
    wait_for(
        lambda: condition_of(refused.xr(), "Admitted").get("status") == "True",
        "the credential allowed",
        explain=refused.explain,
    )


def test_a_document_larger_than_its_cloud_takes_is_refused_until_it_fits(
    stack: Stack, refused: Node, tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text(_certificates(LARGE_BUNDLE_BYTES), encoding="utf-8")
    stack.kill_reconciler()
    stack.start_reconciler({"PLEXSPHERE_PROVISIONING_BROKER_CA_BUNDLE_FILE": str(bundle)})
    try:
        refused.apply()
        told = wait_for(
            lambda: _too_large(condition_of(refused.xr(), "BootstrapInjected")),
            "BootstrapInjected=False/UserDataTooLarge",
            explain=refused.explain,
        )
        assert "spec.userData: " in told["message"]
        assert "accepts at most 16384" in told["message"]
        handle = refused.handle()
        assert refused.substrate(handle) is None
        assert refused.machine(handle) is None
    finally:
        stack.kill_reconciler()
        stack.start_reconciler()

    assert refused.until_ready() == handle
    refused.assert_created_once(handle)


LARGE_BUNDLE_BYTES = 20_000
"""Certificates hardly compress, and the limit is 16 KB."""


def _too_large(condition: dict[str, Any]) -> dict[str, Any] | None:
    too_large = condition.get("status") == "False" and condition["reason"] == "UserDataTooLarge"
    return condition if too_large else None


def _certificates(size: int) -> str:
    """Return that many bytes, or a little more, of certificates that nobody can compress."""
    bundle = ""
    while len(bundle) < size:
        text = base64.encodebytes(secrets.token_bytes(600)).decode("ascii")
        bundle += f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"
    return bundle


def _publish(stack: Stack, name: str, **changes: Any) -> None:
    found = stack.plane.cluster.get(API, "BlueprintVersion", "generic-vm-v1alpha1")
    assert found is not None
    metadata = {"name": name}
    spec = {**found["spec"], **changes}
    stack.plane.apply(
        {"apiVersion": API, "kind": "BlueprintVersion", "metadata": metadata, "spec": spec}
    )


def _credential(stack: Stack, *, projects: list[str]) -> None:
    spec = {
        "cloudRef": {"name": "demo"},
        "vault": {"mount": "kv", "path": "somebody/else"},
        "projects": projects,
    }
    metadata = {"name": "foreign"}
    stack.plane.apply(
        {"apiVersion": API, "kind": "CloudCredential", "metadata": metadata, "spec": spec}
    )


DECOY = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize("resource", ["substrate", "record"])
def test_a_decoy_under_a_name_of_ours_is_neither_taken_nor_deleted(
    stack: Stack, make_node: MakeNode, resource: str
) -> None:
    node = make_node()
    decoy: dict[str, Any] = {**DECOY, "metadata": _decoy(node, resource)}
    xr = {
        "apiVersion": API,
        "kind": "ProvisionedResource",
        "metadata": {"name": node.name, "namespace": node.namespace},
        "spec": {
            "blueprintRef": {"name": node.blueprint},
            "cloudCredentialRef": {"name": node.credential},
            "parameters": node.parameters,
            "crossplane": {
                "compositionRef": {"name": node.composition},
                "resourceRefs": [{**DECOY, "name": decoy["metadata"]["name"]}],
            },
        },
    }
    stack.plane.apply(decoy)
    stack.plane.apply(xr)

    said = wait_for(
        lambda: _matching(condition_of(node.xr(), "Admitted"), "NotComposedHere"),
        "Admitted=False/NotComposedHere",
        timeout_s=45.0,
        explain=node.explain,
    )
    assert f"observed resource '{resource}'" in said["message"]
    assert condition_of(node.xr(), "Synced").get("status") == "False"
    found = node.cluster.get("v1", "ConfigMap", decoy["metadata"]["name"], node.namespace)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    assert "labels" not in found["metadata"]
    assert node.record() is None
    # It goes, and so does what it was in the way of.
    node.cluster.delete("v1", "ConfigMap", decoy["metadata"]["name"], node.namespace)
    handle = node.until_ready()
    assert [one["name"] for one in _substrates(node)] == [handle]
    node.delete(propagation="Background")
    node.until_gone(handle)


def _decoy(node: Node, resource: str) -> dict[str, Any]:
    annotations = {"crossplane.io/composition-resource-name": resource}
    return {
        "name": f"{node.name}-decoy",
        "namespace": node.namespace,
        "annotations": annotations,
    }


def _substrates(node: Node) -> list[dict[str, Any]]:
    record = node.record()
    return [] if record is None else list(record["spec"]["substrate"])
