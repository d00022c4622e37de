"""Single writes to an API server, each safe to repeat.

What counts as success when a write comes late or twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from function.contract import names
from reconciler.adapters.kubernetes.transport import served_versions
from reconciler.adapters.kubernetes.transport.client import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE,
    METADATA_ONLY,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.ports.cluster.namespaces import Needed
from reconciler.ports.cluster.substrates import KindNotServedError

FIELD_MANAGER: Final = "provisioning-broker"
_QUERY: Final = {"fieldManager": FIELD_MANAGER}

MayWrite = Callable[[], None]
"""Asked right before each write; raises when whoever writes may not any more."""


def anybody() -> None:
    """Let every write pass: for a program that drives nothing."""


def is_marked(found: Object) -> bool:
    """Tell whether an object is about to be released."""
    return names.ANNOTATION_RELEASING in (found["metadata"].get("annotations") or {})


def _as_read(found: Object, annotations: dict[str, str]) -> Object:
    metadata = found["metadata"]
    version = metadata["resourceVersion"]
    return {
        "metadata": {
            "uid": metadata["uid"], "resourceVersion": version, "annotations": annotations
        }
    }  # fmt: skip


class Effects:
    """Writes under our field manager's name, by whoever may write."""

    def __init__(self, client: KubernetesClient, may_write: MayWrite = anybody) -> None:
        self._client = client
        self._may_write = may_write

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

    async def find(self, manifest: Object, *, accept: str = JSON) -> Object | None:
        """Return an object by a live GET; None when it is absent or its kind not served."""
        path = await self.path_of(manifest)
        return None if path is None else await self._client.get(path, accept=accept)

    async def find_served(self, manifest: Object, *, accept: str = JSON) -> Object | None:
        """Return an object by a live GET; None only when it is absent and its kind served.

        Raises:
            KindNotServedError: The API server does not serve the kind, so that nothing can
                be said of the object.
        """
        found = await self.find(manifest, accept=accept)
        if found is None and not await served_versions.serves(self._client, manifest):
            message = f"cannot look up {manifest['kind']}: {manifest['apiVersion']} is not served"
            error = KindNotServedError(message)
            error.elsewhere = await served_versions.serving_version(self._client, manifest)
            raise error
        return found

    async def create(self, collection: str, body: Object) -> bool:
        """Create an object; tell whether it was not there already."""
        self._may_write()
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
        self._may_write()
        await self._client.request("PATCH", path, body=body, query=query, content_type=APPLY)

    async def patch(
        self, path: str, body: object, *, content_type: str, accept: str = JSON
    ) -> Object:
        """Patch an object and return what it is now; preconditions are the body's.

        Raises:
            KubernetesError: 404 when it is gone, 409 or 422 when a precondition fails.
        """
        self._may_write()
        return await self._client.request(
            "PATCH", path, body=body, query=_QUERY, content_type=content_type, accept=accept
        )

    async def is_stale(
        self, error: KubernetesError, path: str, uid: str, *, version: str | None = None
    ) -> bool:
        """Tell whether a patch failed for what it was to; 422 is also what breaks the schema.

        Args:
            error: What the API server answered.
            path: The object's.
            uid: Of the object that was meant.
            version: Its resourceVersion, where that was a precondition, too.
        """
        if error.status not in (404, 409, 422):
            return False
        live = await self._client.get(path)
        if live is None or live["metadata"]["uid"] != uid:
            return True
        return version is not None and live["metadata"]["resourceVersion"] != version

    async def marked(
        self, path: str, found: Object, needed: Needed, *, accept: str = JSON
    ) -> Object | None:
        """Mark what is about to be released, and ask once more; None when it has to stay.

        Whoever needs it stores that before it looks here: either it sees the mark and takes it
        off, which makes what is done with the answer fail, or `needed` sees what it stored.

        Args:
            path: The object's.
            found: What it was when it was read.
            needed: Asks the rows.
            accept: As much of the object as is read.
        """
        if not is_marked(found):
            try:
                found = await self.patch(
                    path, _as_read(found, {names.ANNOTATION_RELEASING: "true"}),
                    content_type=MERGE, accept=accept,
                )  # fmt: skip
            except KubernetesError as error:
                if error.status == 404 or (error.status == 409 and await needed()):
                    return None
                if error.status == 409:
                    raise _lost(path) from error
                if error.status != 403:
                    raise
                # Who lets a provider's ProviderConfigs be deleted only gets no mark on them; they
                # go as they were read, which the same provider's finalizer guards while in use.
        return None if await needed() else found

    async def surely_let_go(self, path: str, *, accept: str = JSON) -> None:
        """Look again after a mark's object was written by somebody else.

        Who needs it takes the mark off; whoever left it there only wrote something of theirs.

        Raises:
            StaleAggregateError: The mark stands, so that it is still to be released.
        """
        live = await self._client.get(path, accept=accept)
        if live is None or "deletionTimestamp" in live["metadata"]:
            return
        if is_marked(live):
            raise _lost(path)

    async def unmark(self, path: str, found: Object) -> None:
        """Take the mark off what is needed. Idempotency: without a mark nothing is written.

        Raises:
            StaleAggregateError: It was written since it was read, so that it may go after all.
        """
        if not is_marked(found):
            return
        if not await self.change(path, found, annotations={names.ANNOTATION_RELEASING: None}):
            raise _lost(path, "keep")

    async def delete_unneeded(
        self, path: str, found: Object, needed: Needed | None, *, accept: str = JSON
    ) -> None:
        """Delete an object of ours as it was when nobody needed it."""
        if needed is not None:
            marked = await self.marked(path, found, needed, accept=accept)
            if marked is None:
                return
            found = marked
        metadata = found["metadata"]
        await self.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
        if needed is not None:
            await self.surely_let_go(path, accept=accept)

    async def change(
        self,
        path: str,
        found: Object,
        *,
        labels: dict[str, str | None] | None = None,
        annotations: dict[str, str | None] | None = None,
    ) -> bool:
        """Set or take off labels and annotations of an object, as it was read.

        Returns:
            Whether it was; one that is gone, or was written since, stays as it is.
        """
        metadata = found["metadata"]
        read = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": {**read, "labels": labels or {}, "annotations": annotations or {}}}
        try:
            await self.patch(path, body, content_type=MERGE, accept=METADATA_ONLY)
        except KubernetesError as error:
            if error.status not in (404, 409):
                raise
            return False
        return True

    async def write_status(self, path: str, read: Object, status: Object) -> None:
        """Replace an object's status, if nobody wrote to it since it was read.

        Raises:
            StaleAggregateError: Somebody did, it is gone, or another one has its name.
        """
        metadata = read["metadata"]
        uid, version = metadata["uid"], metadata["resourceVersion"]
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            await self.patch(f"{path}/status", patch, content_type=JSON_PATCH)
        except KubernetesError as error:
            if await self.is_stale(error, path, uid, version=version):
                kind, name = path.split("/")[-2:]
                message = f"cannot write status of {kind} {name!r}: it changed since it was read"
                raise StaleAggregateError(message) from error
            raise

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object; an absent one, or with a uid another one there, is success.

        With a resourceVersion besides, so is one that was written since: it stays.
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
        self._may_write()
        try:
            await self._client.request("DELETE", path, body=body)
        except KubernetesError as error:
            if error.status != 404 and (uid is None or error.status != 409):
                raise


def _lost(path: str, verb: str = "release") -> StaleAggregateError:
    kind, name = path.split("/")[-2:]
    return StaleAggregateError(f"cannot {verb} {kind} {name!r}: it changed since it was read")
