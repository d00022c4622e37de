"""The calls on what outlives a node: its substrate and the siblings of that.

Reading, releasing, letting go and deleting one object of any kind. A refusal of rights is
told apart from others, because only a platform team can fix it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.adapters.kubernetes.objects import composites, health, manifests, xr_facts
from reconciler.adapters.kubernetes.objects.composites import Composites
from reconciler.adapters.kubernetes.objects.writes import Effects
from reconciler.adapters.kubernetes.transport.client import (
    JSON,
    MERGE,
    METADATA_ONLY,
    KubernetesClient,
    KubernetesError,
)
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.health import Health
from reconciler.ports.cluster.substrates import LiveObject, NotAllowedError


class ProtectedObjects:
    """Objects of any namespaced kind on one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects) -> None:
        self._effects = effects
        self._composites = Composites(client)

    async def get_xr_facts(self, xr: XRReference, namespace: str) -> XRFacts:
        """Look up a composite resource, live; another uid under its name is not it.

        An empty uid stands for whichever has the name.
        """
        manifest = {
            "apiVersion": xr.api_version,
            "kind": xr.kind,
            "metadata": {"name": xr.name, "namespace": namespace},
        }
        return xr_facts.facts(await self._effects.find_served(manifest), xr.uid)

    async def health(self, reference: SubstrateReference, namespace: str) -> Health | None:
        """Return what an object says by a live GET; None when it is gone, or of the core group."""
        return await health.read(self._effects, reference, namespace)

    async def get_object(self, reference: SubstrateReference, namespace: str) -> LiveObject | None:
        """Return an object by a live GET, or None when it is gone."""
        # Of a leaf only its metadata are our business: it may be a Secret.
        accept = JSON if await self._composites.includes(reference) else METADATA_ONLY
        with _rights(reference, "get"):
            found = await self._effects.find_served(
                manifests.manifest(reference, namespace), accept=accept
            )
        if found is None:
            return None
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        labels = metadata.get("labels") or {}
        return LiveObject(
            uid=metadata["uid"],
            terminating="deletionTimestamp" in metadata,
            released=annotations.get(names.ANNOTATION_RELEASED) == "true",
            held=labels.get(names.LABEL_HOLD) == "true",
            below_held=composites.is_marked(labels),
            controller=manifests.controller(found),
            finalizers=tuple(metadata.get("finalizers") or ()),
            deleting_since=manifests.deleting_since(found),
            below=composites.below(found),
            version=metadata["resourceVersion"],
        )

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Set the released annotation, with the uid as precondition."""
        body = {"uid": uid, "annotations": {names.ANNOTATION_RELEASED: "true"}}
        if not await self._patch(reference, namespace, body):
            raise _not_as_read(reference)

    async def is_composite(self, reference: SubstrateReference) -> bool:
        """Tell whether an object is one that composes others."""
        return await self._composites.includes(reference)

    async def hold_below(
        self, reference: SubstrateReference, namespace: str, *, live: LiveObject, handle: str
    ) -> None:
        """Mark a composite as it was looked at."""
        labels = composites.mark(handle, namespace)
        body = {"uid": live.uid, "resourceVersion": live.version, "labels": labels}
        if not await self._patch(reference, namespace, body):
            raise _not_as_read(reference)

    async def let_go(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Take hold and mark off, with the uid as precondition; one that is gone needs none."""
        labels: dict[str, None] = {names.LABEL_HOLD: None}
        if await self._composites.includes(reference):
            labels |= composites.NO_MARK
        await self._patch(reference, namespace, {"uid": uid, "labels": labels})

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str, foreground: bool = True
    ) -> None:
        """Delete with the uid as precondition; absent is success."""
        path = await self._effects.path_of(manifests.manifest(reference, namespace))
        propagation = "Foreground" if foreground else "Background"
        if path is not None:
            with _rights(reference, "delete"):
                await self._effects.delete(path, uid=uid, propagation=propagation)

    async def _patch(
        self, reference: SubstrateReference, namespace: str, metadata: dict[str, Any]
    ) -> bool:
        """Merge into an object's metadata; tell whether it is still the one with this uid.

        With a resourceVersion besides, tell whether it is still as it was read.
        """
        path = await self._effects.path_of(manifests.manifest(reference, namespace))
        if path is None:
            return False
        try:
            with _rights(reference, "patch"):
                await self._effects.patch(path, {"metadata": metadata}, content_type=MERGE)
        except KubernetesError as error:
            uid, version = metadata["uid"], metadata.get("resourceVersion")
            if await self._effects.is_stale(error, path, uid, version=version):
                return False
            raise
        return True


def _not_as_read(reference: SubstrateReference) -> StaleAggregateError:
    message = f"cannot write {reference.kind} {reference.name!r}: it changed since it was read"
    return StaleAggregateError(message)


@contextmanager
def _rights(reference: SubstrateReference, verb: str) -> Iterator[None]:
    try:
        yield
    except KubernetesError as error:
        if error.status != 403:
            raise
        message = (
            f"cannot {verb} {reference.kind} {reference.name!r} in {reference.api_version}: "
            "it is forbidden to the reconciler"
        )
        raise NotAllowedError(message) from error
