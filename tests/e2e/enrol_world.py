"""A platform team's own XR with our `Enrol` in its pipeline, and what the tests see of it.

Belongs here: its definition, its Compositions and the rights it takes, and one XR of it.
Not here: assertions on a case. Machines are leaves here: our function decorates them, and
nothing of ours is above them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dev import facts
from dev.facts import Fact
from dev.kube import Cluster
from dev.stack import FUNCTION_NAME, Stack
from function.contract import names
from tests.e2e.world import (
    API,
    CLOUD_API,
    EARNED_S,
    PROJECT,
    TIMEOUT_S,
    Object,
    aggregate,
    condition_of,
    wait_for,
)

GROUP: Final = "enrol.tests.plexsphere.com"
POOL_API: Final = f"{GROUP}/v1alpha1"
NETWORK: Final = "network"
AFTER: Final = "after"
PLAIN: Final = "pool-plain"
"""The Composition without our step."""

ENROLLED: Final = "pool-enrolled"
FORGETFUL: Final = "pool-forgetful"
"""With our step, which names none of the machines."""

RIGHTLESS: Final = "pool-rightless"
"""Holds a sibling of a kind that the reconciler has no rights on."""

_COMPOSE: Final = """
class Pool(BaseComposite):
    def compose(self):
        for number in range(int(self.spec.count)):
            node = self.resources[f'node-{{number}}']
            node('cloud.demo.plexsphere.com/v1alpha1', 'Machine')
            node.metadata.labels['team'] = 'theirs'
            node.spec.forProvider.region = 'nbg1'
            node.spec.forProvider.instanceType = 'standard-2'
            node.spec.forProvider.diskSizeGb = 40
            node.spec.forProvider.tags['owner'] = 'theirs'
        network = self.resources.network('v1', '{kind}')
        network.metadata.labels['team'] = 'theirs'
        network.ready = True
"""

_AFTER: Final = """
class After(BaseComposite):
    def compose(self):
        self.autoReady = False
        after = self.resources.after('v1', 'ConfigMap')
        after.data.by = 'a later step'
        after.ready = True
"""

ENTRY: Final[Object] = {
    "name": "node-*",
    "injectionStrategy": "cloud-init-user-data",
    "provider": "generic",
    "labelsFrom": "spec.labels",
    "paths": {"userData": "spec.forProvider.userData", "tags": "spec.forProvider.tags"},
    "hold": [NETWORK],
}
OTHER: Final[Object] = {**ENTRY, "name": "other-*", "hold": []}


def definition() -> Object:
    """Return the XRD; its label is what docs/enrol.md tells platform teams to set."""
    schema: Object = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "minimum": 0, "maximum": 8},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "retry": {"type": "integer"},
                },
            }
        },
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"pools.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Pool", "plural": "pools"},
            "versions": [version],
        },
    }


def composition(name: str, entries: Sequence[Object] = (), *, network: str = "ConfigMap") -> Object:
    """Return a Composition: a third-party step, ours if it has entries, a third-party step."""
    ours = {
        "step": "enrol",
        "functionRef": {"name": FUNCTION_NAME},
        "input": {
            "apiVersion": names.INPUT_API_VERSION,
            "kind": "Enrol",
            "resources": list(entries),
        },
    }
    steps = [_third_party("compose", _COMPOSE.format(kind=network)), *([ours] if entries else [])]
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": POOL_API, "kind": "Pool"},
            "mode": "Pipeline",
            "pipeline": [*steps, _third_party("last", _AFTER)],
        },
    }


def _third_party(step: str, program: str) -> Object:
    return {
        "step": step,
        "functionRef": {"name": "crossplane-contrib-function-pythonic"},
        "input": {
            "apiVersion": "pythonic.fn.crossplane.io/v1alpha1",
            "kind": "Composite",
            "composite": program,
        },
    }


def rights() -> list[Object]:
    """Return what a platform team grants for kinds of its own."""
    everything = ["get", "list", "watch", "create", "update", "patch", "delete"]
    return [
        _role(
            "compose",
            "rbac.crossplane.io/aggregate-to-crossplane",
            [("", "configmaps", everything), ("", "serviceaccounts", everything)],
        ),
        reconciler_role(["configmaps", "machines", "pools"]),
    ]


def reconciler_role(plurals: Sequence[str]) -> Object:
    """Return the reconciler's rights on some of the kinds."""
    verbs = {"pools": (GROUP, ["get"])}
    protected = ["get", "patch", "delete"]
    groups = {"configmaps": "", "serviceaccounts": "", "machines": CLOUD_API.partition("/")[0]}
    verbs |= {plural: (group, protected) for plural, group in groups.items()}
    rules = [(verbs[plural][0], plural, verbs[plural][1]) for plural in plurals]
    return _role("tear-down", f"{names.GROUP}/aggregate-to-reconciler", rules)


def _role(name: str, label: str, rules: Sequence[tuple[str, str, list[str]]]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"enrol-tests-{name}", "labels": {label: "true"}},
        "rules": [
            {"apiGroups": [group], "resources": [plural], "verbs": verbs}
            for group, plural, verbs in rules
        ],
    }


@dataclass
class Pool:
    """One XR of the team's kind and everything below it."""

    stack: Stack
    name: str
    namespace: str = PROJECT

    @property
    def cluster(self) -> Cluster:
        return self.stack.plane.cluster

    def apply(
        self, count: int, *, composition: str = ENROLLED, labels: Object | None = None
    ) -> Pool:
        spec: Object = {
            "count": count,
            "labels": labels or {"team": "checkout"},
            "crossplane": {"compositionRef": {"name": composition}},
        }
        metadata = {"name": self.name, "namespace": self.namespace}
        self.cluster.apply(
            {"apiVersion": POOL_API, "kind": "Pool", "metadata": metadata, "spec": spec}
        )
        return self

    def delete(self, propagation: str) -> None:
        self.cluster.delete(POOL_API, "Pool", self.name, self.namespace, propagation=propagation)

    def xr(self) -> Object | None:
        return self.cluster.get(POOL_API, "Pool", self.name, self.namespace)

    def record(self, resource: str) -> Object | None:
        name = names.record_name(group=GROUP, kind="Pool", name=self.name, resource=resource)
        return self.cluster.get(API, "ProvisioningRecord", name, self.namespace)

    def handle(self, resource: str) -> str:
        """Return `pr-<uuid>` of a resource's record, or nothing."""
        return str(((self.record(resource) or {}).get("status") or {}).get("xrName", ""))

    def machine(self, name: str) -> Object | None:
        return self.cluster.get(CLOUD_API, "Machine", name, self.namespace)

    def composed(self, resource: str, kind: str = "ConfigMap", api: str = "v1") -> Object | None:
        """Return what the XR composes under a name."""
        found = self.cluster.list(api, kind, self.namespace)
        return next((item for item in found if self._composes(item, resource)), None)

    def _composes(self, item: Object, resource: str) -> bool:
        metadata = item["metadata"]
        annotations = metadata.get("annotations") or {}
        labels = metadata.get("labels") or {}
        return (
            annotations.get("crossplane.io/composition-resource-name") == resource
            and labels.get("crossplane.io/composite") == self.name
        )

    def until_ready(self, *resources: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Wait until the XR and the records of some resources are Ready; return the handles."""
        wait_for(
            lambda: self._all_ready(resources),
            f"{self.name} Ready with {resources}",
            timeout_s=timeout_s,
            explain=self.explain,
        )
        return [self.handle(resource) for resource in resources]

    def _all_ready(self, resources: Sequence[str]) -> bool:
        records = [self.record(resource) for resource in resources]
        return all(
            condition_of(found, "Ready").get("status") == "True" for found in (self.xr(), *records)
        )

    def until_earned(self) -> None:
        """Wait until its XR has earned its breaker's tokens back: one a second."""
        xr = self.xr()
        assert xr is not None
        born = datetime.fromisoformat(xr["metadata"]["creationTimestamp"])
        wait_for(
            lambda: (datetime.now(UTC) - born).total_seconds() > EARNED_S, f"{self.name} of age"
        )

    def until_gone(self) -> None:
        """Wait until nothing of the XR is left."""
        wait_for(lambda: self.xr() is None, f"{self.name} gone", explain=self.explain)
        wait_for(lambda: self.left() == [], f"all of {self.name} gone", explain=self.explain)

    def left(self) -> list[str]:
        """Name what is still there below the XR."""
        kinds = [(API, "ProvisioningRecord"), (CLOUD_API, "Machine"), ("v1", "ConfigMap")]
        return [
            f"{kind} {item['metadata']['name']}"
            for api, kind in kinds
            for item in self.cluster.list(api, kind, self.namespace)
            if (item["metadata"].get("labels") or {}).get("crossplane.io/composite") == self.name
        ]

    def explain(self) -> str:
        """Say what the objects themselves say."""
        found = [self.xr(), *self.cluster.list(API, "ProvisioningRecord", self.namespace)]
        return " | ".join(_explained(item) for item in found if item is not None)

    def facts(self, *subjects: str) -> list[Fact]:
        told = [
            *facts.from_postgres(self.stack.postgres.dsn),
            *facts.from_cloud(self.stack.cloud_root),
        ]
        return sorted(fact for fact in told if fact.subject in subjects)

    def moment(self, source: str, what: str, subject: str) -> datetime:
        """Return when something first happened."""
        found = facts.first(self.facts(subject), source, what, subject)
        assert found is not None, f"{source} {what} {subject}: {self.facts(subject)}"
        return found.at

    def deletion(self, plural: str, name: str) -> datetime | None:
        """Return when a deletion was not refused; None when it is not known."""
        log = self.stack.plane.audit_log
        for line in [] if log is None else log.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            target, status = entry.get("objectRef") or {}, entry.get("responseStatus") or {}
            about = (entry.get("verb"), target.get("resource"), target.get("name"))
            if about == ("delete", plural, name) and status.get("code") == 200:
                return datetime.fromisoformat(entry["requestReceivedTimestamp"])
        return None

    def assert_drained(self, handle: str) -> None:
        """Assert that a node left the mesh before its machine was asked to go, and that is all."""
        out = self.moment("mesh", "deregistered", handle)
        assert out < self.moment("cloud", "delete-requested", handle)
        row = wait_for(lambda: aggregate(self.stack.postgres.dsn, handle), "its row")
        assert (row["status"], row["live_nodes"], row["live_tokens"]) == ("Deleted", 0, 0)
        told = [fact.what for fact in self.facts(handle) if fact.source == "event"]
        assert told[-2:] == [
            "broker.ProvisionedResourceDeleting",
            "broker.ProvisionedResourceDeleted",
        ]
        assert len(told) == len(set(told))

    def assert_untouched(self, handle: str, machine: Object) -> None:
        """Assert that a node and its machine are what they were."""
        found = self.machine(handle)
        assert found is not None
        assert found["metadata"]["uid"] == machine["metadata"]["uid"]
        assert "deletionTimestamp" not in found["metadata"]
        told = {fact.what for fact in self.facts(handle)}
        assert not told & {"deregistered", "delete-requested", "token revoked"}


def _explained(item: Object) -> str:
    told = " ".join(
        f"{c['type']}={c['status']}:{c.get('reason')}:{c.get('message', '')[:160]}"
        for c in (item.get("status") or {}).get("conditions", [])
    )
    return f"{item['kind']} {item['metadata']['name']}: {told}"
