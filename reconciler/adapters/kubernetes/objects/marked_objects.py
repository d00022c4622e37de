"""Objects that carry the record label, listed without their content.

The pages of such a list. Source: Kubernetes API, "Retrieving large results sets in chunks",
PartialObjectMetadataList.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from function.contract import names
from reconciler.adapters.kubernetes.transport.client import (
    METADATA_LIST,
    KubernetesClient,
    KubernetesError,
    group_path,
)
from reconciler.domain.teardown.orphans import MarkedObject
from reconciler.ports.cluster.orphans import Kind
from reconciler.ports.cluster.substrates import NotAllowedError

PAGE: Final = 500
"""Objects of one answer, some 500 kB with their managed fields."""
PAGES_MAX: Final = 200
"""A hundred thousand objects of one kind; more than that is not this cluster."""


class KubernetesMarkedObjects:
    """Implements `ports.cluster.orphans.MarkedObjects` on one API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    async def list_marked(self, kind: Kind) -> Sequence[MarkedObject]:
        """Return the marked objects of a kind, in every namespace; none where it is not served."""
        try:
            return await self._list(kind)
        except KubernetesError as error:
            if error.status == 404:
                return ()
            if error.status == 403:
                message = f"cannot list {kind[1]} in {kind[0]}: it is forbidden to the reconciler"
                raise NotAllowedError(message) from error
            raise

    async def _list(self, kind: Kind) -> Sequence[MarkedObject]:
        path = f"{group_path(kind[0])}/{await self._client.plural(*kind)}"
        query = {"labelSelector": names.LABEL_RECORD, "limit": str(PAGE)}
        found: list[MarkedObject] = []
        for _ in range(PAGES_MAX):
            answer = await self._client.request("GET", path, query=query, accept=METADATA_LIST)
            found += [_marked(kind, item["metadata"]) for item in answer.get("items") or []]
            more = (answer.get("metadata") or {}).get("continue")
            if not more:
                break
            query["continue"] = more
        return found


def _marked(kind: Kind, metadata: dict[str, Any]) -> MarkedObject:
    return MarkedObject(
        api_version=kind[0],
        kind=kind[1],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        record=metadata["labels"][names.LABEL_RECORD],
        uid=metadata["uid"],
    )
