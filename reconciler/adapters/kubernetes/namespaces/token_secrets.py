"""The Secrets that carry tokens to machines.

Making and deleting one, the only place that unwraps a token to deliver it. Each belongs to
one record object; one under the same name that is another object's is not touched by a late
call.
"""

from __future__ import annotations

import base64
from typing import Final

from function.contract import names
from reconciler.adapters.kubernetes.namespaces.project_rights import ProjectRights
from reconciler.adapters.kubernetes.objects import manifests, records
from reconciler.adapters.kubernetes.objects.writes import Effects
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object
from reconciler.adapters.kubernetes.transport.responses import KubernetesError
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.ports.store.aggregates import DrawnToken

_BEGINNINGS: Final = ("psb_", "cHNi")
"""How every token begins, plain and in base64 (contracts §3.3)."""


class TokenSecrets:
    """Token Secrets of one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects, rights: ProjectRights) -> None:
        self._client = client
        self._effects = effects
        self._rights = rights

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        """Tell whether there is one, by a live GET."""
        async with self._rights.exercised(namespace):
            return await self._client.get(f"{_all(namespace)}/{name}") is not None

    async def create_token_secret(self, record: Object, *, name: str, token: DrawnToken) -> bool:
        """Create the immutable Secret of one generation; the record's own stays as it is.

        One that an earlier record of this name left behind gives way: its token opens
        nothing any more, and the garbage collector may not have come yet.

        Args:
            record: Who owns it.
            name: The Secret's.
            token: What is in it.

        Returns:
            Whether what is there carries it.

        Raises:
            StaleAggregateError: The record is gone: what stands there may be its successor's.
            KubernetesError: The API server refuses it; without the server's words where they
                repeat a token, as a webhook's may.
        """
        namespace = record["metadata"]["namespace"]
        body = _manifest(record, name=name, token=token)
        async with self._rights.exercised(namespace):
            return await self._deliver(_all(namespace), body, record)

    async def _deliver(self, collection: str, body: Object, record: Object) -> bool:
        name = body["metadata"]["name"]
        if await self._create(collection, body):
            return True
        uid = record["metadata"]["uid"]
        found = await self._client.get(f"{collection}/{name}")
        if found is not None and manifests.owned_by(found, uid):
            return bool(found.get("data") == body["data"])
        # Looked up after the Secret: while the record is there, what was found is older than it.
        live = await self._client.get(records.path(record))
        if live is None or live["metadata"]["uid"] != uid:
            message = f"cannot deliver token in Secret {name!r}: its record is gone"
            raise StaleAggregateError(message)
        if found is not None:
            await self._effects.delete(f"{collection}/{name}", uid=found["metadata"]["uid"])
        return await self._create(collection, body)

    async def _create(self, collection: str, body: Object) -> bool:
        try:
            return await self._effects.create(collection, body)
        except KubernetesError as error:
            if not any(beginning in str(error) for beginning in _BEGINNINGS):
                raise
            raise KubernetesError(
                attempted="create token secret",
                status=error.status,
                reason=error.reason,
                detail="the response is omitted, because it repeats the request",
                causes=error.causes,
            ) from None

    async def delete_token_secret(self, namespace: str, name: str, *, owner: str) -> None:
        """Delete one if it belongs to the record with this uid."""
        path = f"{_all(namespace)}/{name}"
        async with self._rights.exercised(namespace):
            found = await self._client.get(path)
            if found is not None and manifests.owned_by(found, owner):
                await self._effects.delete(path, uid=found["metadata"]["uid"])


def _manifest(record: Object, *, name: str, token: DrawnToken) -> Object:
    metadata = record["metadata"]
    encoded = base64.b64encode(token.plaintext.reveal().encode()).decode()
    generation = base64.b64encode(str(token.generation).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": names.TOKEN_SECRET_TYPE,
        "immutable": True,
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {names.LABEL_RECORD: metadata["name"]},
            "ownerReferences": [manifests.owner(record)],
        },
        "data": {
            names.TOKEN_SECRET_KEY: encoded,
            names.TOKEN_SECRET_GENERATION_KEY: generation,
        },
    }


def _all(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"
