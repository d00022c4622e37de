"""Composite resources among the objects that are protected, and the mark that holds their children.

Telling composites from leaves, the mark's form. Crossplane gives a composite's claim labels
on to all that it composes, composites included, so that the mark reaches every depth at no
cost. Source: docs/decisions/0012; Crossplane core, `RenderComposedResourceMetadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from function.contract import names
from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object, group_path

CLAIM_NAME: Final = "crossplane.io/claim-name"
CLAIM_NAMESPACE: Final = "crossplane.io/claim-namespace"
"""Both or neither are given on; a namespaced composite never has a claim of its own."""

NO_MARK: Final[Mapping[str, None]] = {CLAIM_NAME: None, CLAIM_NAMESPACE: None}

_CATEGORY: Final = "composite"
"""What Crossplane puts every composite's definition in."""


def mark(handle: str, namespace: str) -> dict[str, str]:
    """Return the labels that hold everything below a composite.

    Args:
        handle: `pr-<uuid>` of the aggregate that protects it.
        namespace: The composite's.
    """
    return {CLAIM_NAME: handle, CLAIM_NAMESPACE: namespace}


def is_marked(labels: Mapping[str, Any]) -> bool:
    """Tell whether labels hold what is below, for whichever aggregate."""
    handle = str(labels.get(CLAIM_NAME, ""))
    return names.provisioned_resource_id(handle) is not None and CLAIM_NAMESPACE in labels


def below(found: Object) -> tuple[SubstrateReference, ...]:
    """Return what a composite composes, as it says itself; nothing for any other object.

    A reference without a name stands for what was not made yet.
    """
    spec = found.get("spec")
    machinery = spec.get("crossplane") if isinstance(spec, Mapping) else None
    listed = machinery.get("resourceRefs") if isinstance(machinery, Mapping) else None
    references: list[SubstrateReference] = []
    for item in listed if isinstance(listed, list) else ():
        try:
            reference = SubstrateReference.model_validate(
                {part: item[part] for part in ("apiVersion", "kind", "name")}
            )
        except (KeyError, TypeError, ValidationError):
            continue
        references.append(reference)
    return tuple(references)


class Composites:
    """The kinds of one API server that are composites.

    Memory is one entry per kind that was asked for and is served.
    """

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], bool] = {}

    async def includes(self, reference: SubstrateReference) -> bool:
        """Tell whether a kind is a composite; one that is not served is none."""
        key = (reference.api_version, reference.kind)
        if key not in self._known:
            listing = await self._client.get(group_path(reference.api_version)) or {}
            for item in listing.get("resources") or []:
                if "/" not in item["name"]:
                    found = _CATEGORY in (item.get("categories") or [])
                    self._known[reference.api_version, item["kind"]] = found
        return self._known.get(key, False)
