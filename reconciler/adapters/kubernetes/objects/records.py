"""The calls on ProvisioningRecords: status, finalizer, Events.

Every write carries the uid or the resourceVersion that was read. Source: design §5.
"""

from __future__ import annotations

from typing import Any, Final

from function.contract import names
from reconciler.adapters.kubernetes.objects import events, manifests
from reconciler.adapters.kubernetes.objects.writes import Effects
from reconciler.adapters.kubernetes.transport.client import (
    JSON_PATCH,
    KubernetesClient,
    KubernetesError,
    Object,
)

_RECORDS: Final = f"/apis/{names.API_VERSION}/namespaces"


class Records:
    """ProvisioningRecords of one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects) -> None:
        self._client = client
        self._effects = effects

    async def write_status(self, record: Object, status: dict[str, Any]) -> None:
        """Replace a record's status, if nobody wrote to the record since it was read."""
        await self._effects.write_status(path(record), record, status)

    async def record_stands(self, record: Object) -> bool:
        """Tell whether a record is there under its uid, as living as it was read."""
        live = await self._client.get(path(record))
        metadata, read = {} if live is None else live["metadata"], record["metadata"]
        going = "deletionTimestamp" in metadata and "deletionTimestamp" not in read
        return metadata.get("uid") == read["uid"] and not going

    async def delete_loose_record(self, record: Object) -> None:
        """Delete a record that nothing controls, as it was when that was seen."""
        where = path(record)
        live = await self._client.get(where)
        uid = record["metadata"]["uid"]
        if live is None or live["metadata"]["uid"] != uid or manifests.controller(live) is not None:
            return
        await self._effects.delete(where, uid=uid, version=live["metadata"]["resourceVersion"])

    async def remove_finalizer(self, record: Object) -> None:
        """Take the teardown finalizer off a record; one that is gone is success."""
        where = path(record)
        live = await self._client.get(where)
        uid = record["metadata"]["uid"]
        if live is None or live["metadata"]["uid"] != uid:
            return
        finalizers = live["metadata"].get("finalizers") or []
        if names.FINALIZER not in finalizers:
            return
        pointer = f"/metadata/finalizers/{finalizers.index(names.FINALIZER)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": pointer, "value": names.FINALIZER},
            {"op": "remove", "path": pointer},
        ]
        try:
            await self._effects.patch(where, patch, content_type=JSON_PATCH)
        except KubernetesError as error:
            if error.status != 404:
                raise

    async def record_event(
        self, record: Object, *, reason: str, message: str, warning: bool = False
    ) -> None:
        """Record an Event on the record and its XR; the name makes it happen once.

        A namespace that is being deleted takes no Events any more; nobody misses them.
        """
        namespace = record["metadata"]["namespace"]
        for subject in events.subjects(record):
            body = events.manifest(
                subject, namespace, reason=reason, message=message, warning=warning
            )
            await events.record(self._effects, body)


def path(record: Object) -> str:
    """Return a record's path on the API server."""
    metadata = record["metadata"]
    return f"{_RECORDS}/{metadata['namespace']}/provisioningrecords/{metadata['name']}"
