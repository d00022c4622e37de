"""Providers of real kinds without their clouds: what they would do, with the demo cloud's machines.

The life of a managed resource as its provider leads it: finalizer, external machine with
the user data it was given, conditions, deletion. The end-to-end tests of installed
blueprints run it.
"""

from __future__ import annotations

import base64
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dev import chart
from dev.controlplane import ControlPlane
from dev.kube import Cluster, RefusedError, refusals
from tests.e2e.world import CLOUD_API, Object, condition_of

OBJECT: Final = ("kubernetes.m.crossplane.io/v1alpha1", "Object")
INSTANCE: Final = ("ec2.aws.m.upbound.io/v1beta1", "Instance")
RELEASE: Final = ("helm.m.crossplane.io/v1beta1", "Release")
KINDS: Final = (OBJECT, INSTANCE, RELEASE)
FINALIZER: Final = "finalizer.managedresource.crossplane.io"
"""What every provider on crossplane-runtime sets before it makes anything."""

LOOK_S: Final = 0.2


ACCOUNT: Final = "published-providers"


@contextlib.contextmanager
def providers_client(plane: ControlPlane) -> Iterator[Cluster]:
    """Give a client under an account in Crossplane's namespace, as a provider's Pod has one."""
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": chart.NAMESPACE}
    rbac = "rbac.authorization.k8s.io"
    plane.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": chart.NAMESPACE},
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject],
        },
    )
    kubeconfig = plane.service_account_kubeconfig(chart.NAMESPACE, ACCOUNT)
    with tempfile.TemporaryDirectory() as cache, Cluster(kubeconfig, Path(cache)) as client:
        yield client


class Providers:
    """Controllers of the kinds above in one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run them until the block ends; a fault of theirs ends the block with it."""
        over = threading.Event()

        def run() -> None:
            while not over.wait(LOOK_S):
                for api, kind in KINDS:
                    for item in self._cluster.list(api, kind, self._namespace):
                        with contextlib.suppress(RefusedError):  # somebody wrote in between
                            self._advance({**item, "apiVersion": api, "kind": kind})

        with ThreadPoolExecutor(max_workers=1) as pool:
            controller = pool.submit(run)
            try:
                yield
            finally:
                over.set()
            controller.result()

    def _advance(self, item: Object) -> None:
        metadata = item["metadata"]
        machine = self._cluster.get(CLOUD_API, "Machine", metadata["name"], self._namespace)
        if "deletionTimestamp" in metadata:
            self._delete(item, machine)
        elif FINALIZER not in metadata.get("finalizers", []):
            self._set_finalizers(item, [FINALIZER])
        elif _is_refused(item):
            self._say_refused(item)
        elif not _is_machine(item):
            self._say_ready(item)
        elif machine is None:
            self._create(item)
        elif condition_of(machine, "Ready").get("status") == "True":
            self._say_ready(item)

    def _delete(self, item: Object, machine: Object | None) -> None:
        name = item["metadata"]["name"]
        if machine is None or not _is_machine(item):
            left = [each for each in item["metadata"]["finalizers"] if each != FINALIZER]
            self._set_finalizers(item, left)
        elif "deletionTimestamp" not in machine["metadata"]:
            self._cluster.delete(CLOUD_API, "Machine", name, self._namespace)

    def _create(self, item: Object) -> None:
        """Create the machine that a managed resource stands for, once its document is there."""
        if (item["apiVersion"], item["kind"]) == INSTANCE:
            given = item["spec"]["forProvider"]
            document, tags = given["userData"], given.get("tags", {})
        else:
            document, tags = self._document(item), {}
        if document is None:
            return
        wanted = {"region": "any", "instanceType": "any", "userData": document, "tags": tags}
        name = {"name": item["metadata"]["name"], "namespace": self._namespace}
        spec = {"forProvider": wanted}
        self._cluster.apply(
            {"apiVersion": CLOUD_API, "kind": "Machine", "metadata": name, "spec": spec}
        )

    def _document(self, item: Object) -> str | None:
        """Follow a virtual machine's references to its document, as provider-kubernetes does.

        Returns:
            None while something on the way is not there.
        """
        before = item["spec"]["references"][0]["dependsOn"]
        copied = self._cluster.get(*OBJECT, before["name"], before["namespace"])
        if copied is None:
            return None
        source = copied["spec"]["references"][0]["patchesFrom"]
        assert source["fieldPath"] == "data.userdata"
        secret = self._cluster.get("v1", "Secret", source["name"], source["namespace"])
        return None if secret is None else base64.b64decode(secret["data"]["userdata"]).decode()

    def _set_finalizers(self, item: Object, finalizers: list[str]) -> None:
        metadata = item["metadata"]
        version = metadata["resourceVersion"]
        body = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
        with refusals(f"patch {metadata['name']}"):
            self._cluster.resource(item["apiVersion"], item["kind"]).patch(
                name=metadata["name"],
                namespace=self._namespace,
                body=body,
                content_type="application/merge-patch+json",
            )

    def _say_ready(self, item: Object) -> None:
        if condition_of(item, "Ready").get("status") == "True":
            return
        self._say(item, _condition("Synced", "ReconcileSuccess"), _condition("Ready", "Available"))

    def _say_refused(self, item: Object) -> None:
        """Say what a provider made by Upjet does when the cloud refuses, user data and all."""
        if condition_of(item, "LastAsyncOperation"):
            return
        document = item["spec"]["forProvider"]["userData"]
        message = (
            "async create failed: failed to create the resource: [{0 creating EC2 Instance: api "
            f'error InvalidParameterValue: t9.huge is no type, userData: "{document}" []}}]'
        )
        refused = _condition("LastAsyncOperation", "AsyncCreateFailure", status="False")
        self._say(item, _condition("Synced", "ReconcileSuccess"), {**refused, "message": message})

    def _say(self, item: Object, *conditions: Object) -> None:
        metadata = {"name": item["metadata"]["name"], "namespace": self._namespace}
        told = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}
        self._cluster.apply_status({**told, "status": {"conditions": list(conditions)}})


def _condition(kind: str, reason: str, *, status: str = "True") -> Object:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": at}


def _is_refused(item: Object) -> bool:
    """Whether its cloud is to refuse it: an instance that says so by a tag."""
    given = item["spec"]["forProvider"]
    is_instance = (item["apiVersion"], item["kind"]) == INSTANCE
    return is_instance and (given.get("tags") or {}).get("demo-create") == "fail"


def _is_machine(item: Object) -> bool:
    if (item["apiVersion"], item["kind"]) == INSTANCE:
        return True
    manifest = item["spec"]["forProvider"].get("manifest") or {}
    return bool(manifest.get("kind") == "VirtualMachine")
