"""A namespace and what stands in it: stand-ins for a substrate and what is below it.

Kinds and objects that need no Crossplane.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from function.contract import names
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller, wait_until

SETTLED_TIMEOUT_S: Final = 45.0
"""The collector and the namespace controller act within seconds and back off when refused."""

SUBSTRATE: Final = (names.BLUEPRINTS_GROUP, "HoldProbe", "holdprobes")
MACHINE: Final = ("machines.plexsphere.test", "MachineProbe", "machineprobes")
RECORD: Final = (names.GROUP, names.RECORD_KIND, "provisioningrecords")
SECRET: Final = ("", "Secret", "secrets")
CONFIG_MAP: Final = ("", "ConfigMap", "configmaps")
"""For what the collector does: it learns of new CRDs only after half a minute."""

RESOURCE_NAME: Final = "crossplane.io/composition-resource-name"
EXTERNAL_NAME: Final = "crossplane.io/external-name"
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
    version = f"{kind[0]}/v1alpha1" if kind[0] else "v1"
    return {"apiVersion": version, "kind": kind[1], "metadata": {"name": name, **metadata}}


def held(**labels: str) -> dict[str, str]:
    """Return the labels of a held object."""
    return {names.LABEL_HOLD: "true", **labels}


class Place:
    """A namespace with the name of a Project's, as an administrator fills it.

    Args:
        admin: allowed everything by RBAC and nothing more by the policies.
    """

    def __init__(self, admin: Caller) -> None:
        self.admin = admin
        self.name = names.project_namespace(uuid4())
        self.path = f"/api/v1/namespaces/{self.name}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        assert admin.create("/api/v1/namespaces", body).ok

    def all(self, kind: Kind) -> str:
        """Return the path of a kind's collection here."""
        if not kind[0]:
            return f"{self.path}/{kind[2]}"
        return f"/apis/{kind[0]}/v1alpha1/namespaces/{self.name}/{kind[2]}"

    def one(self, kind: Kind, name: str) -> str:
        return f"{self.all(kind)}/{name}"

    def make(self, kind: Kind, name: str = "", **metadata: Any) -> str:
        """Create an object and return its path."""
        name = name or f"probe-{uuid4().hex[:8]}"
        answer = self.admin.create(self.all(kind), manifest(kind, name, **metadata))
        assert answer.ok, answer.message
        return self.one(kind, name)

    def substrate(self, kind: Kind = SUBSTRATE, **metadata: Any) -> str:
        """Create a held substrate and return its path."""
        labels = held(**{names.LABEL_RECORD: "web-1-0123456789"})
        return self.make(kind, f"pr-{uuid4()}", labels=labels, **metadata)

    def machine(self, substrate: str = "", kind: Kind = MACHINE, **metadata: Any) -> str:
        """Create what stands below a substrate, by default a new one, and return its path.

        As Crossplane does it, the label names the outermost XR. The owner has to exist, or
        the collector takes what is below it.
        """
        labels = {names.CROSSPLANE_COMPOSITE: "web-1"}
        owner = self.owner(substrate or self.substrate())
        return self.make(kind, **{"labels": labels, "ownerReferences": owner, **metadata})

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

    def clear(self) -> None:
        """Take away what a test left, whatever holds it."""
        caller = self.admin.as_user("cleaner", MASTERS, BREAK_GLASS)
        for kind in (SUBSTRATE, MACHINE, RECORD, CONFIG_MAP, SECRET):
            for item in caller.get(self.all(kind)).body.get("items", []):
                path = self.one(kind, item["metadata"]["name"])
                caller.patch(path, {"metadata": {"finalizers": None}})
                caller.delete(path)
        caller.patch(self.path, LABEL_OFF)
        caller.delete(self.path)
