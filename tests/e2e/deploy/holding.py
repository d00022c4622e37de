"""What the tests of the admission policies stand on: kinds, objects, and the policies.

Belongs here: stand-ins for a substrate and what is below it, so that no Crossplane is
needed, and putting the policies into force. Not here: what they must refuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dev import binaries
from dev.controlplane import ControlPlane
from dev.kube import documents
from function.contract import names
from tests.e2e.deploy.identity import RECONCILER, Answer, Caller, wait_until

DEPLOY: Final = Path(__file__).resolve().parents[3] / "deploy"

ACTIVE_TIMEOUT_S: Final = 30.0
"""A policy is in force about two seconds after it was made."""

SETTLED_TIMEOUT_S: Final = 45.0
"""The collector and the namespace controller act within seconds and back off when refused."""

SUBSTRATE: Final = (names.BLUEPRINTS_GROUP, "HoldProbe", "holdprobes")
MACHINE: Final = ("machines.plexsphere.test", "MachineProbe", "machineprobes")
RECORD: Final = (names.GROUP, names.RECORD_KIND, "provisioningrecords")

RELEASED: Final = {names.ANNOTATION_RELEASED: "true"}
LABEL_OFF: Final = {"metadata": {"labels": {names.LABEL_HOLD: None}}}

Kind = tuple[str, str, str]
Object = dict[str, Any]


def definition(kind: Kind) -> Object:
    """Return a namespaced CRD that takes anything."""
    group, name, plural = kind
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": name, "plural": plural},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def manifest(kind: Kind, name: str, **metadata: Any) -> Object:
    """Return an object of a kind; `metadata` is added to its name."""
    return {
        "apiVersion": f"{kind[0]}/v1alpha1",
        "kind": kind[1],
        "metadata": {"name": name, **metadata},
        "spec": {},
    }


def config_map(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def held(**labels: str) -> dict[str, str]:
    """Return the labels of a held object."""
    return {names.LABEL_HOLD: "true", **labels}


class Place:
    """A namespace of its own, as an administrator fills it.

    Args:
        admin: allowed everything by RBAC and nothing more by the policies.
    """

    def __init__(self, admin: Caller) -> None:
        self.admin = admin
        self.name = f"hold-{uuid4().hex[:12]}"
        self.path = f"/api/v1/namespaces/{self.name}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        assert admin.create("/api/v1/namespaces", body).ok

    def all(self, kind: Kind) -> str:
        """Return the path of a kind's collection here."""
        return f"/apis/{kind[0]}/v1alpha1/namespaces/{self.name}/{kind[2]}"

    def one(self, kind: Kind, name: str) -> str:
        return f"{self.all(kind)}/{name}"

    def make(self, kind: Kind, name: str = "", **metadata: Any) -> str:
        """Create an object and return its path."""
        name = name or f"probe-{uuid4().hex[:8]}"
        answer = self.admin.create(self.all(kind), manifest(kind, name, **metadata))
        assert answer.ok, answer.message
        return self.one(kind, name)

    def substrate(self, **metadata: Any) -> str:
        """Create a held substrate and return its path."""
        labels = held(**{names.LABEL_RECORD: "web-1-0123456789"})
        return self.make(SUBSTRATE, f"pr-{uuid4()}", labels=labels, **metadata)

    def machine(self, composite: str = "", **metadata: Any) -> str:
        """Create what stands below a substrate and return its path."""
        labels = {names.CROSSPLANE_COMPOSITE: composite or f"pr-{uuid4()}"}
        return self.make(MACHINE, labels=labels, **metadata)

    def owner(self, path: str) -> list[Object]:
        """Return owner references to an object, as its controller."""
        item = self.admin.get(path).body
        reference = {key: item[key] for key in ("apiVersion", "kind")}
        reference |= {key: item["metadata"][key] for key in ("name", "uid")}
        return [{**reference, "controller": True, "blockOwnerDeletion": True}]

    def there(self, path: str) -> bool:
        """Tell whether an object exists and is not being deleted."""
        answer = self.admin.get(path)
        return answer.ok and "deletionTimestamp" not in answer.body["metadata"]

    def gone(self, path: str) -> bool:
        return self.admin.get(path).status == 404

    def await_gone(self, path: str) -> None:
        wait_until(lambda: self.gone(path), timeout_s=SETTLED_TIMEOUT_S, what=f"{path} is gone")


def apply_kinds(plane: ControlPlane) -> None:
    """Install our kinds, the roles, and the stand-ins."""
    plane.apply(
        DEPLOY / "namespace.yaml",
        DEPLOY / "crds",
        DEPLOY / "rbac",
        definition(SUBSTRATE),
        definition(MACHINE),
    )


def apply_policies(plane: ControlPlane, *policies: str) -> None:
    """Put policies into force, by file name without suffix, and wait until they refuse."""
    for policy in policies:
        plane.apply(DEPLOY / "policies" / f"{policy}.yaml")
    bindings = [
        binding
        for binding in documents([DEPLOY / "policies" / "bindings.yaml"])
        if binding["spec"]["policyName"].removeprefix("plexsphere-") in policies
    ]
    plane.apply(*bindings)
    place = Place(Caller(plane.kubeconfig))
    probes: dict[str, Callable[[], Answer]] = {
        "hold": partial(place.admin.delete, f"{place.substrate()}?dryRun=All"),
        "hold-children": partial(place.admin.delete, f"{place.machine()}?dryRun=All"),
        "hold-records": partial(
            place.admin.patch,
            f"{make_record(place)}?dryRun=All",
            {"metadata": {"finalizers": None}},
        ),
    }
    for policy in policies:
        refuses = partial(_is_refused, probes[policy])
        wait_until(refuses, timeout_s=ACTIVE_TIMEOUT_S, what=f"{policy} refuses")


def _is_refused(probe: Callable[[], Answer]) -> bool:
    return probe().status == 403


def make_record(place: Place, **metadata: Any) -> str:
    """Create a record as the function would and return its path."""
    body = manifest(RECORD, f"web-{uuid4().hex[:10]}", finalizers=[names.FINALIZER], **metadata)
    body["spec"] = {
        "declaration": {
            "xr": {
                "apiVersion": names.API_VERSION,
                "kind": names.XR_KIND,
                "name": "web-1",
                "uid": str(uuid4()),
            },
            "resource": names.RESOURCE_SUBSTRATE,
            "blueprint": {"name": "generic-vm-v1alpha1", "version": "v1alpha1"},
            "injectionStrategy": "cloud-init-user-data",
            "meshRole": "node",
            "provider": "hetzner",
            "parameters": {"region": "nbg1", "diskSizeGb": 40, "backups": True},
        }
    }
    answer = place.admin.create(place.all(RECORD), body)
    assert answer.ok, answer.message
    return place.one(RECORD, body["metadata"]["name"])


def release(place: Place, path: str) -> None:
    """Release an object as the reconciler does."""
    body = {"metadata": {"annotations": RELEASED}}
    answer = place.admin.as_user(RECONCILER).patch(path, body)
    assert answer.ok, answer.message


def hold_namespace(place: Place, *, records: str) -> None:
    """Hold a namespace as the reconciler does."""
    metadata = {"labels": held(), "annotations": {names.ANNOTATION_RECORDS: records}}
    answer = place.admin.as_user(RECONCILER).patch(place.path, {"metadata": metadata})
    assert answer.ok, answer.message


def serve_xrds(plane: ControlPlane) -> None:
    """Install Crossplane's own definition of XRDs where nobody has."""
    name = "compositeresourcedefinitions.apiextensions.crossplane.io"
    if plane.cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name) is None:
        manifests = binaries.core_manifests(report=lambda _line: None)
        plane.apply(manifests.crds / f"apiextensions.crossplane.io_{name.partition('.')[0]}.yaml")


def xrd(name: str) -> Object:
    """Return a held XRD; its name is `<plural>.<group>`."""
    plural, _, group = name.partition(".")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": name, "labels": held()},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "XProbe", "plural": plural},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def refused(answer: Answer, *words: str) -> bool:
    """Tell whether a policy of ours refused, with a message that holds all words."""
    if answer.status != 403 or "plexsphere-hold" not in answer.message:
        return False
    return all(word in answer.message for word in words)


def await_refusal(plane: ControlPlane, user: str, path: str) -> None:
    """Wait until a user's deletion of an object was refused, where that is audited."""
    wait_until(
        lambda: plane.audit_log is None or refusals(plane.audit_log, user, path),
        timeout_s=SETTLED_TIMEOUT_S,
        what=f"{user} is refused the deletion of {path}",
    )


def refusals(audit_log: Path, user: str, path: str) -> int:
    """Count a user's refused deletions of an object."""
    count = 0
    with audit_log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            count += (
                event["user"]["username"] == user
                and event["requestURI"].partition("?")[0] == path
                and event["verb"] in {"delete", "deletecollection"}
                and event.get("responseStatus", {}).get("code") == 403
            )
    return count
