"""The hold on what a cloud's credential is made of: a Secret and its ExternalSecret.

The calls. A Secret's values are never asked for: metadata is all that is read, and all that
a patch answers with.
"""

from __future__ import annotations

from function.contract import names
from reconciler.adapters.kubernetes.namespaces.project_rights import ProjectRights
from reconciler.adapters.kubernetes.objects import manifests
from reconciler.adapters.kubernetes.objects.writes import Effects, is_marked
from reconciler.adapters.kubernetes.transport.client import (
    METADATA_ONLY,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.domain.protection import external_secret
from reconciler.ports.cluster.namespaces import Needed


class CredentialObjects:
    """Secrets and ExternalSecrets of one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects, rights: ProjectRights) -> None:
        self._client = client
        self._effects = effects
        self._rights = rights

    async def hold_credentials(
        self, namespace: str, name: str, *, held: bool, needed: Needed | None = None
    ) -> bool:
        """Put the hold on a Secret and its ExternalSecret, or take it off."""
        async with self._rights.exercised(namespace):
            if held:
                return await self._hold_both(namespace, name)
            return await self._let_go(namespace, name, needed=needed)

    async def render_external_secret(self, manifest: Object) -> bool:
        """Make our ExternalSecret if it differs; tell whether it is ours and served."""
        async with self._rights.exercised(manifest["metadata"]["namespace"]):
            return await self._render(manifest)

    async def external_secret_taken(self, manifest: Object) -> bool:
        """Tell whether an ExternalSecret of that name stands which is not ours."""
        async with self._rights.exercised(manifest["metadata"]["namespace"]):
            path = await self._effects.path_of(manifest)
            found = None if path is None else await self._metadata(path)
            return found is not None and not _is_ours(found)

    async def _hold_both(self, namespace: str, name: str) -> bool:
        """Put the hold on both; tell whether the Secret is there.

        Somebody may have prepared either: what says that it is released says so no more once
        it is held, and one that goes is held by nobody.

        The Secret is held first and let go last: an ExternalSecret without a template hands
        its labels on, and External Secrets may neither create with the hold nor take it off.
        """
        present = await self._hold(_secret(namespace, name))
        external = await self._effects.path_of(_external(namespace, name)) if present else None
        if external is not None:
            await self._hold(external)
        return present

    async def _let_go(self, namespace: str, name: str, *, needed: Needed | None) -> bool:
        """Take the hold off both unless they are needed; tell whether the Secret is there.

        An ExternalSecret of ours goes with its last user, and takes the Secret that was made
        of it along.
        """
        external = await self._effects.path_of(_external(namespace, name))
        found = None if external is None else await self._metadata(external)
        ours = found is not None and _is_ours(found)
        if external is not None and found is not None and not ours:
            await self._unhold(external, needed)
        present = await self._unhold(_secret(namespace, name), needed)
        if external is not None and found is not None and ours:
            await self._effects.delete_unneeded(external, found, needed, accept=METADATA_ONLY)
        return present

    async def _render(self, manifest: Object) -> bool:
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
        if found is None:
            # It went, and is recreated the next time.
            return True
        if not _is_ours(found):
            return False
        if "deletionTimestamp" in found["metadata"]:
            return True
        await self._effects.unmark(path, found)
        if not manifests.holds(found, manifest):
            await self._change(path, manifest, uid=found["metadata"]["uid"])
        return True

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

    async def _hold(self, path: str) -> bool:
        """Set the label, and take the mark and the release off; compared first.

        Raises:
            GoingError: It is being deleted, and was not held before.
            StaleAggregateError: It was written since it was read.
        """
        found = await self._metadata(path)
        if found is None:
            return False
        held = _is_held(found)
        if held and not is_marked(found) and not manifests.is_released(found):
            return True
        if not held:
            manifests.refuse_going(found, "Secret" if "/secrets/" in path else external_secret.KIND)
        if await self._label(path, found, "true"):
            return True
        if await self._metadata(path) is None:
            return False
        message = f"cannot hold {path.rpartition('/')[2]!r}: it changed since it was read"
        raise StaleAggregateError(message)

    async def _unhold(self, path: str, needed: Needed | None) -> bool:
        """Take the label off what nobody needs, as it was when that was asked."""
        found = await self._metadata(path)
        if found is None or not _is_held(found):
            return found is not None
        if needed is not None:
            found = await self._effects.marked(path, found, needed, accept=METADATA_ONLY)
        if found is not None and not await self._label(path, found, None):
            await self._effects.surely_let_go(path, accept=METADATA_ONLY)
        return True

    async def _label(self, path: str, found: Object, held: str | None) -> bool:
        return await self._effects.change(
            path,
            found,
            labels={names.LABEL_HOLD: held},
            annotations={names.ANNOTATION_RELEASING: None, names.ANNOTATION_RELEASED: None},
        )


def _secret(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def _is_held(found: Object) -> bool:
    return (found["metadata"].get("labels") or {}).get(names.LABEL_HOLD) == "true"


def _external(namespace: str, name: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": external_secret.API_VERSION,
        "kind": external_secret.KIND,
        "metadata": metadata,
    }


def _is_ours(found: Object) -> bool:
    """Tell whether it was rendered here: anybody may write our label, and not the hold."""
    return _is_held(found) and external_secret.is_ours(found["metadata"].get("labels") or {})
