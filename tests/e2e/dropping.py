"""What somebody who may patch objects could do to have a living node's machine dropped.

Belongs here: the changes, and trying them. Not here: each field by itself (`tests/e2e/deploy`).
Of each of these Crossplane or the provider dropped the machine at once, under its own account,
while its node was in the mesh (docs/decisions/0026).
"""

from __future__ import annotations

from typing import Final

from tests.e2e.deploy.holding import refused
from tests.e2e.deploy.identity import MASTERS, Caller
from tests.e2e.deploy.place import EXTERNAL_NAME, RESOURCE_NAME
from tests.e2e.world import CLOUD_API, SUBSTRATE_API, Node, Object

MACHINE: Final = (CLOUD_API, "machines")
SUBSTRATE: Final = (SUBSTRATE_API, "xgenericvms")
CHANGES: Final[tuple[tuple[tuple[str, str], Object], ...]] = (
    (MACHINE, {"metadata": {"annotations": {RESOURCE_NAME: "another"}}}),
    (MACHINE, {"metadata": {"annotations": {EXTERNAL_NAME: "another"}}}),
    (MACHINE, {"metadata": {"ownerReferences": None}}),
    (MACHINE, {"metadata": {"finalizers": None}}),
    (MACHINE, {"spec": {"forProvider": {"region": "fsn1"}}}),
    (SUBSTRATE, {"metadata": {"annotations": {RESOURCE_NAME: "another"}}}),
    (SUBSTRATE, {"spec": {"crossplane": {"compositionRef": {"name": "x"}}}}),
    (SUBSTRATE, {"spec": {"crossplane": {"resourceRefs": None}}}),
)


TRIES: Final = 5
"""Somebody else may write between a look and a try."""


def assert_refused(node: Node, handle: str) -> int:
    """Assert that no change of what is there gets through; answer how many were refused."""
    jane = Caller(node.stack.plane.kubeconfig).as_user("jane", MASTERS)
    return sum(
        _is_refused(jane, f"/apis/{api}/namespaces/{node.namespace}/{plural}/{handle}", change)
        for (api, plural), change in CHANGES
    )


def _is_refused(jane: Caller, path: str, change: Object) -> bool:
    """Tell whether a change was refused, and not for nothing: there was something to change."""
    answer = jane.get(path)
    for _ in range(TRIES):
        before = answer.body["metadata"].get("resourceVersion")
        answer = jane.patch(path, change)
        if answer.status == 404:
            return False
        if not answer.ok:
            assert refused(answer, path.rpartition("/")[2]), f"{change}: {answer.message}"
            return True
        if answer.body["metadata"]["resourceVersion"] == before:
            return False
    message = f"{path}: {change} got through"
    raise AssertionError(message)
