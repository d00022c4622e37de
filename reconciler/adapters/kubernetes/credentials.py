"""The hold on what a cloud's credential is made of: a Secret and its ExternalSecret.

Belongs here: the calls. Not here: who uses a credential (`app.credential_hold`). A Secret's
values are never asked for: metadata is all that is read, and all that a patch answers with.
Imported by the gateway.
"""

from __future__ import annotations

from typing import Any, Final

from function.contract import names
from reconciler.adapters.kubernetes.client import (
    MERGE,
    METADATA_ONLY,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.adapters.kubernetes.effects import Effects
from reconciler.domain.broker import external_secret

_DEPTH_MAX: Final = 16
"""Deeper than any manifest of ours."""


class CredentialObjects:
    """Secrets and ExternalSecrets of one API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._effects = Effects(client)

    async def hold(self, namespace: str, name: str, *, held: bool) -> bool:
        """Put the hold on both or take it off; tell whether the Secret is there.

        The Secret is held first and let go last: an ExternalSecret without a template hands
        its labels on, and External Secrets may neither create with the hold nor take it off.
        One of ours goes with its last user, and takes the Secret that was made of it along.
        """
        secret = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        external = await self._effects.path_of(_external(namespace, name))
        if not held:
            found = None if external is None else await self._metadata(external)
            if external is not None and found is not None and _is_ours(found):
                present = await self._label(secret, held=False)
                await self._effects.delete(external, uid=found["metadata"]["uid"])
                return present
            if external is not None:
                await self._label(external, held=False)
            return await self._label(secret, held=False)
        present = await self._label(secret, held=True)
        if present and external is not None:
            await self._label(external, held=True)
        return present

    async def render(self, manifest: Object) -> bool:
        """Make our ExternalSecret, or have it as it should be; tell whether it is ours.

        A new one is created and never applied, so that of a name that somebody takes at the
        same moment nothing is overwritten.
        """
        path = await self._effects.path_of(manifest)
        if path is None:
            return False
        found = await self._client.get(path)
        if found is None:
            if await self._effects.create(path.rpartition("/")[0], manifest):
                return True
            found = await self._client.get(path)
        if found is None or "deletionTimestamp" in found["metadata"]:
            # It goes, and is made anew the next time.
            return True
        if not _is_ours(found):
            return False
        if not _holds(found, manifest):
            await self._change(path, manifest, uid=found["metadata"]["uid"])
        return True

    async def is_taken(self, manifest: Object) -> bool:
        """Tell whether an ExternalSecret of that name stands which is not ours."""
        path = await self._effects.path_of(manifest)
        found = None if path is None else await self._metadata(path)
        return found is not None and not _is_ours(found)

    async def _change(self, path: str, manifest: Object, *, uid: str) -> None:
        """Apply a manifest to the object with this uid; another one there stays as it is."""
        body = {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}
        try:
            await self._effects.apply(path, body)
        except KubernetesError as error:
            if not await self._effects.is_stale(error, path, uid):
                raise

    async def _metadata(self, path: str) -> Object | None:
        return await self._client.get(path, accept=METADATA_ONLY)

    async def _label(self, path: str, *, held: bool) -> bool:
        """Set or take off the label, compared first, with the uid as precondition."""
        found = await self._metadata(path)
        if found is None:
            return False
        metadata = found["metadata"]
        now = (metadata.get("labels") or {}).get(names.LABEL_HOLD)
        wanted = "true" if held else None
        if now == wanted:
            return True
        body = {"metadata": {"uid": metadata["uid"], "labels": {names.LABEL_HOLD: wanted}}}
        try:
            await self._effects.patch(path, body, content_type=MERGE, accept=METADATA_ONLY)
        except KubernetesError as error:
            if error.status != 404:
                raise
            return False
        return True


def _external(namespace: str, name: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": external_secret.API_VERSION,
        "kind": external_secret.KIND,
        "metadata": metadata,
    }


def _is_ours(found: Object) -> bool:
    return external_secret.is_ours(found["metadata"].get("labels") or {})


def _holds(found: Any, wanted: Any, depth: int = 0) -> bool:
    """Tell whether all that is wanted is there; the server has added its defaults."""
    if depth > _DEPTH_MAX:  # pragma: no cover - manifests of ours are six deep
        return False
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and _holds(found[key], value, depth + 1) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_holds(a, b, depth + 1) for a, b in zip(found, wanted, strict=True))
        )
    return bool(found == wanted)
