"""What somebody who may patch objects could do to have a living node's machine dropped.

The changes, and trying them. Of each of these Crossplane or the provider dropped the
machine at once, under its own account, while its node was in the mesh
(docs/decisions/0026).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from function.contract import names
from tests.e2e.deploy.holding import refused
from tests.e2e.deploy.identity import MASTERS, Answer, Caller
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

TRIES: Final = 8
"""Somebody else may write between a look and a try."""

_SUBSTRATE_NAME: Final = re.compile(r"pr-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of a try.

    Attributes:
        held: Whether the very version that was tried on is protected.
        changed: Whether that try changed it.
    """

    held: bool
    changed: bool
    answer: Answer


def is_protected(found: Object) -> bool:
    """Tell whether an object is held, or is below a substrate."""
    metadata = found["metadata"]
    if (metadata.get("labels") or {}).get(names.LABEL_HOLD) == "true":
        return True
    owners = metadata.get("ownerReferences") or []
    return any(o.get("controller") and _SUBSTRATE_NAME.fullmatch(o["name"]) for o in owners)


def attempt(who: Caller, path: str, change: Object | None) -> Attempt | None:
    """Try a change of an object, or its deletion, with exactly the version that was looked at.

    Args:
        change: A merge patch; None deletes.

    Returns:
        None where nothing is there, or others wrote each time.
    """
    for _ in range(TRIES):
        found = who.get(path)
        if not found.ok:
            return None
        metadata = found.body["metadata"]
        version = {"resourceVersion": metadata["resourceVersion"]}
        held = is_protected(found.body)
        if change is None:
            held = held and names.ANNOTATION_RELEASED not in (metadata.get("annotations") or {})
            answer = who.delete(path, preconditions=version)
            changed = answer.ok
        else:
            given = {**change, "metadata": {**change.get("metadata", {}), **version}}
            answer = who.patch(path, given)
            changed = (
                answer.ok and answer.body["metadata"]["resourceVersion"] not in version.values()
            )
        if answer.status not in (404, 409):
            return Attempt(held=held, changed=changed, answer=answer)
    return None


def assert_refused(node: Node, handle: str) -> int:
    """Assert that no change of what is there gets through; answer how many were refused."""
    jane = Caller(node.stack.plane.kubeconfig).as_user("jane", MASTERS)
    return sum(
        _is_refused(jane, f"/apis/{api}/namespaces/{node.namespace}/{plural}/{handle}", change)
        for (api, plural), change in CHANGES
    )


def _is_refused(jane: Caller, path: str, change: Object) -> bool:
    """Tell whether a change was refused, and not for nothing: there was something to change."""
    tried = attempt(jane, path, change)
    if tried is None or not tried.held:
        return False
    assert not tried.changed, f"{path}: {change} got through"
    if tried.answer.ok:
        return False
    assert refused(tried.answer, path.rpartition("/")[2]), f"{change}: {tried.answer.message}"
    return True
