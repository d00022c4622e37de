"""Where a random run takes place: three Projects with blueprints of short patience, and twelve XRs.

What is made before it begins, and what each XR is. Pools and every other
ProvisionedResource have a machine made anew whose node does not come; two have a pipeline
that is four seconds slower.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Final

from dev.stack import Stack
from function.contract import names
from tests.e2e import enrol_world
from tests.e2e.conftest import DELAYS, delayed
from tests.e2e.enrol_world import ENTRY, GROUP, POOL_API
from tests.e2e.random_run.deeds import MACHINES, PROJECTS, XRS, Deed, Fault
from tests.e2e.world import API, Object, wait_for

CREDENTIAL: Final = "random-run"
KEPT: Final = "random-run-kept"
RECREATED: Final = "random-run-recreated"
COMPOSITION: Final = "random-run-pool"
SLOW: Final = frozenset({4, 7})
PATIENCE: Final[Object] = {"policy": "Keep", "timeout": "1m"}
MAKES_ANEW: Final[Object] = {"policy": "Recreate", "timeout": "1m", "attempts": 1}
PROVISIONING_TIMEOUT: Final = "2m"
DISK_GB: Final = 40
TEAM: Final = {"team": "checkout"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Xr:
    """One XR, by its number, whether it is there or not."""

    number: int
    namespace: str

    @property
    def is_pool(self) -> bool:
        return self.number >= MACHINES

    @property
    def name(self) -> str:
        return f"random-{self.number}"

    @property
    def key(self) -> str:
        """Name it among all."""
        return f"{self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """Return its path at the API server."""
        if self.is_pool:
            return f"/apis/{POOL_API}/namespaces/{self.namespace}/pools/{self.name}"
        return f"/apis/{API}/namespaces/{self.namespace}/provisionedresources/{self.name}"

    @property
    def records(self) -> tuple[str, ...]:
        """Return the names of its records, those of a larger pool too."""
        group, kind = (GROUP, "Pool") if self.is_pool else (names.GROUP, names.XR_KIND)
        resources = ("node-0", "node-1") if self.is_pool else (names.RESOURCE_SUBSTRATE,)
        return tuple(
            names.record_name(group=group, kind=kind, name=self.name, resource=resource)
            for resource in resources
        )

    def manifest(self, deed: Deed) -> Object:
        """Return it as Git would hold it."""
        labels = {**TEAM, **deed.fault.labels}
        slow = delayed(max(DELAYS)) if self.number in SLOW else "provisionedresource"
        machine: Object = {
            "blueprintRef": {"name": KEPT if self.number % 2 else RECREATED},
            "cloudCredentialRef": {"name": CREDENTIAL},
            "parameters": {"region": "nbg1", "diskSizeGb": DISK_GB},
            "labels": labels,
            "crossplane": {"compositionRef": {"name": slow}},
        }
        pool: Object = {
            "count": 1 + deed.chance % 2,
            "labels": labels,
            "crossplane": {"compositionRef": {"name": COMPOSITION}},
        }
        return {
            "apiVersion": POOL_API if self.is_pool else API,
            "kind": "Pool" if self.is_pool else names.XR_KIND,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": pool if self.is_pool else machine,
        }


def no_faults() -> Object:
    """Return a change of an XR's labels that takes every fault off."""
    asked = {name for fault in Fault for name in fault.labels}
    return {"spec": {"labels": dict.fromkeys(sorted(asked))}}


def prepare(stack: Stack, seed: int) -> list[Xr]:
    """Make Projects, credential, blueprints and the pools' kind; return the XRs, none declared."""
    seen = f"{stack.node_url}/random-run/{seed}"
    ids = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{seen}/{number}")) for number in range(PROJECTS)]
    projects = [
        _kind("Project", f"random-run-{seed}-{number}", id=one, domainRef={"name": "acme"})
        for number, one in enumerate(ids)
    ]
    credential = _kind(
        "CloudCredential",
        CREDENTIAL,
        cloudRef={"name": "demo"},
        vault={"mount": "kv", "path": "acme/random-run"},
        projects=[project["metadata"]["name"] for project in projects],
    )
    blueprints = [
        _blueprint(stack, name, registration)
        for name, registration in ((KEPT, PATIENCE), (RECREATED, MAKES_ANEW))
    ]
    stack.plane.apply(*projects, credential, *blueprints)
    entry = {**ENTRY, "registration": MAKES_ANEW}
    enrol_world.install(stack, enrol_world.composition(COMPOSITION, [entry]))
    for project in projects:
        ready = partial(_is_ready, stack, project["metadata"]["name"])
        wait_for(ready, f"{project['metadata']['name']} Ready")
    return [
        Xr(number=number, namespace=f"plexsphere-project-{ids[number % PROJECTS]}")
        for number in range(XRS)
    ]


def _is_ready(stack: Stack, project: str) -> bool:
    found = stack.plane.cluster.get(API, "Project", project) or {}
    return (found.get("status") or {}).get("namespacePhase") == "Ready"


def _kind(kind: str, name: str, **spec: object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _blueprint(stack: Stack, name: str, registration: Object) -> Object:
    """Return the demo's, with another patience and a disk that may grow."""
    known = stack.plane.cluster.get(API, "BlueprintVersion", "generic-vm-v1alpha1")
    assert known is not None
    disk = {"name": "diskSizeGb", "type": "integer", "default": DISK_GB, "mutable": True}
    others = [one for one in known["spec"]["parameters"] if one["name"] != disk["name"]]
    spec = {
        **known["spec"],
        "slug": name,
        "parameters": [*others, disk],
        "registration": registration,
        "provisioningTimeout": PROVISIONING_TIMEOUT,
    }
    return _kind("BlueprintVersion", name, **spec)
