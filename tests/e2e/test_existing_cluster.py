"""A cluster that was there before: what is asked of it, and how it is left."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev import existing, handmade, stack
from dev.controlplane import ControlPlane
from dev.crossplane import Crossplane
from dev.kube import KubeError
from dev.objects import documents
from dev.process import free_port
from dev.remove import remove
from tests.e2e.world import wait_for

pytestmark = pytest.mark.e2e

DEADLINE_S = 60.0
NOBODY = {"name": "nobody", "namespace": "default"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("plane"), report=print) as control_plane:
        collector = ("v1", "ServiceAccount", "generic-garbage-collector", "kube-system")
        wait_for(lambda: control_plane.cluster.get(*collector), "a cluster that was there before")
        yield control_plane


@pytest.fixture(scope="module")
def core(plane: ControlPlane) -> Crossplane:
    crossplane = Crossplane(plane.cluster, plane.run_dir)
    crossplane.start(plane.supervisor, report=print)
    return crossplane


def test_an_existing_cluster_is_used_and_left_alone(plane: ControlPlane, tmp_path: Path) -> None:
    with ControlPlane.existing(plane.kubeconfig, tmp_path) as existing:
        existing.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "mark", "namespace": "default"},
                "data": {"a": base64.b64encode(b"b").decode()},
            }
        )

    assert plane.cluster.get("v1", "Secret", "mark", "default") is not None


def test_a_user_who_may_too_little_is_told_what_is_missing(
    plane: ControlPlane, tmp_path: Path
) -> None:
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": NOBODY})
    path = plane.service_account_kubeconfig(NOBODY["namespace"], NOBODY["name"])

    with pytest.raises(KubeError, match=r"nobody may not create namespaces, .*") as caught:
        ControlPlane.existing(path, tmp_path).start()

    assert "create customresourcedefinitions.apiextensions.k8s.io" in str(caught.value)


def test_a_function_from_a_package_is_not_replaced(plane: ControlPlane, core: Crossplane) -> None:
    taken = handmade.function("taken")
    taken["spec"]["package"] = "xpkg.example.org/acme/function-taken:v0.1.0"
    plane.apply(taken)

    with pytest.raises(KubeError, match="Function taken is installed from a package"):
        existing.check_crossplane(plane.cluster, "free", "taken")


def test_what_was_installed_is_removed_with_what_an_interrupted_run_left(
    plane: ControlPlane, core: Crossplane
) -> None:
    parts = (*stack.DEPLOY, *stack.CLOUD, *stack.PRODUCT, *stack.BLUEPRINTS)
    plane.apply(*(stack.ROOT / part for part in parts), timeout_s=DEADLINE_S)
    core.register_function(stack.FUNCTION_NAME, free_port())
    plane.apply(stack.ROOT / "example/platform", timeout_s=DEADLINE_S)
    plane.apply(
        {
            "apiVersion": "cloud.demo.plexsphere.com/v1alpha1",
            "kind": "Machine",
            "metadata": {
                "name": "left",
                "namespace": "default",
                "finalizers": ["tests.example.org/nobody-takes-it-off"],
            },
            "spec": {"forProvider": {"region": "nbg1", "userData": ""}},
        }
    )

    assert remove(plane.cluster)

    left = [item for item in documents(stack.ROOT / part for part in parts) if held(plane, item)]
    assert left == []
    assert not remove(plane.cluster)


def held(plane: ControlPlane, item: dict[str, Any]) -> bool:
    metadata = item["metadata"]
    place = (item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
    return plane.cluster.get(*place) is not None
