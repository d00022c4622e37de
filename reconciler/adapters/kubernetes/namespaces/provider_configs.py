"""The calls on ProviderConfigs: whose one is, making it, correcting it, deleting it.

What tells ours from others, and the writes. One is ours only if it is held: people with a
right on ProviderConfigs may write every annotation, and the hold is put on by who may
update Projects. Source: docs/decisions/0022.
"""

from __future__ import annotations

from typing import Any

from function.contract import names
from reconciler.adapters.kubernetes.namespaces.project_rights import ProjectRights
from reconciler.adapters.kubernetes.objects import manifests
from reconciler.adapters.kubernetes.objects.writes import FIELD_MANAGER, Effects
from reconciler.adapters.kubernetes.transport.client import (
    JSON_PATCH,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL, KIND
from reconciler.ports.cluster.namespaces import SOMEBODY_ELSE, Needed
from reconciler.ports.cluster.substrates import NotAllowedError


class ProviderConfigs:
    """ProviderConfigs of one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects, rights: ProjectRights) -> None:
        self._client = client
        self._effects = effects
        self._rights = rights

    async def provider_config_holder(self, manifest: Object) -> str | None:
        """Return which credential holds a ProviderConfig's name; None when it is free."""
        async with self._rights.exercised(manifest["metadata"]["namespace"]):
            found = await self._effects.find(manifest)
            return None if found is None else _holder(found)

    async def ensure_provider_config(self, manifest: Object) -> None:
        """Create a ProviderConfig, or have ours as it should be; another's stays.

        A new one is created and never applied, so that of a name that somebody takes at the
        same moment nothing is overwritten.

        Raises:
            GoingError: It is being deleted.
            NotAllowedError: It differs, and the reconciler may not change it.
            StaleAggregateError: It was written since it was read.
        """
        async with self._rights.exercised(manifest["metadata"]["namespace"]):
            await self._ensure(manifest)

    async def _ensure(self, manifest: Object) -> None:
        path = await self._effects.path_of(manifest)
        if path is None:
            return
        found = await self._client.get(path)
        if found is None:
            await self._effects.create(path.rpartition("/")[0], manifest)
            return
        if _holder(found) != _holder(manifest):
            return
        manifests.refuse_going(found, KIND)
        await self._effects.unmark(path, found)
        if not manifests.holds(found, manifest) or _says_more(found, manifest):
            await self._correct(path, found, manifest)

    async def delete_provider_config(
        self, *, api_version: str, namespace: str, name: str, needed: Needed | None = None
    ) -> None:
        """Delete one of ours; an absent one is success, another's stays."""
        metadata = {"name": name, "namespace": namespace}
        manifest = {"apiVersion": api_version, "kind": KIND, "metadata": metadata}
        async with self._rights.exercised(namespace):
            path = await self._effects.path_of(manifest)
            found = None if path is None else await self._client.get(path)
            if path is not None and found is not None and _holder(found) != SOMEBODY_ELSE:
                await self._effects.delete_unneeded(path, found, needed)

    async def provider_config_secret(self, manifest: Object) -> str | None:
        """Return the credential's Secret that one refers to, or None."""
        async with self._rights.exercised(manifest["metadata"]["namespace"]):
            return manifests.credentials_secret(await self._effects.find(manifest) or {})

    async def _correct(self, path: str, found: Object, manifest: Object) -> None:
        metadata = found["metadata"]
        body = {**manifest, "metadata": {**manifest["metadata"], "uid": metadata["uid"]}}
        try:
            await self._take_over(path, found)
            await self._effects.apply(path, body)
        except KubernetesError as error:
            name = metadata["name"]
            if error.status == 403:
                message = f"cannot patch {KIND} {name!r} in {manifest['apiVersion']}: forbidden"
                raise NotAllowedError(message) from error
            uid, version = metadata["uid"], metadata["resourceVersion"]
            if not await self._effects.is_stale(error, path, uid, version=version):
                raise
            message = f"cannot change {KIND} {name!r}: it changed since it was read"
            raise StaleAggregateError(message) from error

    async def _take_over(self, path: str, found: Object) -> None:
        """Make what its creation wrote ours as an apply's, so that applying less takes it off.

        Kubernetes' own `csaupgrade` does the same.
        """
        entries = found["metadata"].get("managedFields") or []
        if any(_is_ours(entry, "Apply") for entry in entries):
            return
        for index, entry in enumerate(entries):
            if _is_ours(entry, "Update"):
                version = found["metadata"]["resourceVersion"]
                where = f"/metadata/managedFields/{index}/operation"
                patch = [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": version},
                    {"op": "replace", "path": where, "value": "Apply"},
                ]
                await self._effects.patch(path, patch, content_type=JSON_PATCH)
                return


def _holder(found: Object) -> str:
    metadata = found["metadata"]
    held = (metadata.get("labels") or {}).get(names.LABEL_HOLD) == "true"
    annotations = metadata.get("annotations") or {}
    return str(annotations.get(ANNOTATION_CREDENTIAL, SOMEBODY_ELSE)) if held else SOMEBODY_ELSE


def _says_more(found: Object, manifest: Object) -> bool:
    """Tell whether its spec has a field of ours that is wanted no longer."""
    for entry in found["metadata"].get("managedFields") or []:
        if _is_ours(entry, "Apply") or _is_ours(entry, "Update"):
            fields = (entry.get("fieldsV1") or {}).get("f:spec")
            if _exceeds(fields, manifest.get("spec")):
                return True
    return False


def _exceeds(fields: Any, wanted: Any) -> bool:
    if not isinstance(fields, dict) or not isinstance(wanted, dict):
        return False
    keys = [key for key in fields if key.startswith("f:")]
    return any(
        key.removeprefix("f:") not in wanted
        or _exceeds(fields[key], wanted[key.removeprefix("f:")])
        for key in keys
    )


def _is_ours(entry: Object, operation: str) -> bool:
    whole = entry.get("manager"), entry.get("operation"), entry.get("subresource", "")
    return whole == (FIELD_MANAGER, operation, "")
