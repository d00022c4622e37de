"""Single writes to an API server, each safe to repeat.

Belongs here: what counts as success when a write comes late or twice. Not here: what is
written, and when. Imported by the gateway.
"""

from __future__ import annotations

from typing import Final

from reconciler.adapters.kubernetes.client import (
    APPLY,
    JSON,
    KubernetesClient,
    KubernetesError,
    Object,
    group_path,
)
from reconciler.ports.cluster import (
    KindNotServedError,
)

FIELD_MANAGER: Final = "provisioning-broker"
_QUERY: Final = {"fieldManager": FIELD_MANAGER}


class Effects:
    """Writes under our field manager's name."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    async def path_of(self, manifest: Object) -> str | None:
        """Return an object's path, or None where its kind is not served."""
        metadata = manifest["metadata"]
        try:
            return await self._client.path(
                manifest["apiVersion"],
                manifest["kind"],
                namespace=metadata["namespace"],
                name=metadata["name"],
            )
        except KubernetesError as error:
            if error.status == 404:
                return None
            raise

    async def find(self, manifest: Object) -> Object | None:
        """Return an object by a live GET; None when it is absent or its kind not served."""
        path = await self.path_of(manifest)
        return None if path is None else await self._client.get(path)

    async def find_served(self, manifest: Object) -> Object | None:
        """Return an object by a live GET; None only when it is absent and its kind served.

        Raises:
            KindNotServedError: The API server does not serve the kind, so that nothing can
                be said of the object.
        """
        found = await self.find(manifest)
        if found is None and not await self._serves(manifest["apiVersion"], manifest["kind"]):
            message = f"cannot look up {manifest['kind']}: {manifest['apiVersion']} is not served"
            raise KindNotServedError(message)
        return found

    async def _serves(self, api_version: str, kind: str) -> bool:
        listing = await self._client.get(group_path(api_version))
        return any(item["kind"] == kind for item in (listing or {}).get("resources") or [])

    async def create(self, collection: str, body: Object) -> bool:
        """Create an object; tell whether it was not there already."""
        try:
            await self._client.request("POST", collection, body=body, query=_QUERY)
        except KubernetesError as error:
            if error.status != 409:
                raise
            return False
        return True

    async def apply(self, path: str, body: Object) -> None:
        """Apply an object server-side; the fields we state become ours.

        Idempotency: equal fields change nothing.
        """
        query = {**_QUERY, "force": "true"}
        await self._client.request("PATCH", path, body=body, query=query, content_type=APPLY)

    async def patch(
        self, path: str, body: object, *, content_type: str, accept: str = JSON
    ) -> None:
        """Patch an object; preconditions are the body's.

        Raises:
            KubernetesError: 404 when it is gone, 409 or 422 when a precondition fails.
        """
        await self._client.request(
            "PATCH", path, body=body, query=_QUERY, content_type=content_type, accept=accept
        )

    async def is_stale(self, error: KubernetesError, path: str, uid: str) -> bool:
        """Tell whether a patch failed for its uid; 422 is also what breaks the schema."""
        if error.status not in (404, 409, 422):
            return False
        live = await self._client.get(path)
        return live is None or live["metadata"]["uid"] != uid

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object; an absent one, or with a uid another one there, is success.

        With a resourceVersion besides, so is one that was written since.
        """
        body: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid is not None:
            body["preconditions"] = {"uid": uid}
            if version is not None:
                body["preconditions"]["resourceVersion"] = version
        try:
            await self._client.request("DELETE", path, body=body)
        except KubernetesError as error:
            if error.status != 404 and (uid is None or error.status != 409):
                raise
