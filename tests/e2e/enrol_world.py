"""A platform team's own XR with our `Enrol` in its pipeline, and what the tests see of it.

Its definition, its Compositions and the rights it takes. Machines are leaves here: our
function decorates them, and nothing of ours is above them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from dev.stack import FUNCTION_NAME, Stack
from function.contract import names
from tests.e2e.conftest import delay_step
from tests.e2e.world import CLOUD_API, Object, condition_of, wait_for

LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Whether this run has the minutes of `make test-long`, and not those of `make test`."""

XRD_API: Final = "apiextensions.crossplane.io/v2"
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


def slowed(delay_s: float) -> str:
    """Name the enrolling Composition whose pipeline takes that much longer."""
    return ENROLLED if delay_s == 0 else f"{ENROLLED}-{str(delay_s).replace('.', '-')}"


def install(stack: Stack, *compositions: Object) -> None:
    """Bring the kind, the rights for it and some Compositions of it.

    Idempotency: a second call changes nothing.
    """
    made = definition()
    stack.plane.apply(*rights(), made)
    name = made["metadata"]["name"]

    def established() -> bool:
        found = stack.plane.cluster.get(XRD_API, "CompositeResourceDefinition", name)
        return condition_of(found, "Established").get("status") == "True"

    wait_for(established, "the XRD established")
    stack.plane.apply(*compositions)


def composition(
    name: str, entries: Sequence[Object] = (), *, network: str = "ConfigMap", delay_s: float = 0
) -> Object:
    """Return a Composition: a third-party step, ours if it has entries, a third-party step.

    Args:
        delay_s: By how much a further step holds every run up; none is there for 0.
    """
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
    slow = [delay_step(delay_s)] if delay_s else []
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": POOL_API, "kind": "Pool"},
            "mode": "Pipeline",
            "pipeline": [*steps, _third_party("last", _AFTER), *slow],
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
