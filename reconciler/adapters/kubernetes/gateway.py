"""The effects on one management cluster, each guarded so that a late one is harmless.

Belongs here: the paths, preconditions and idempotency of single calls. Not here: when to
make them. Every write carries a uid, or is create-only by name.
Source: design §2, §5 "Several replicas and several clusters".
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.adapters.kubernetes import events, manifests, preconditions, xr_facts
from reconciler.adapters.kubernetes.client import (
    JSON_PATCH,
    MERGE,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.adapters.kubernetes.credentials import CredentialObjects
from reconciler.adapters.kubernetes.effects import Effects
from reconciler.adapters.kubernetes.protected import ProtectedObjects
from reconciler.adapters.kubernetes.rights import Rights
from reconciler.domain.broker.errors import StaleAggregateError
from reconciler.domain.broker.provider_config import ANNOTATION_CREDENTIAL
from reconciler.domain.broker.release import XRFacts
from reconciler.ports.broker import (
    IssuedToken,
)
from reconciler.ports.cluster import (
    LiveObject,
)

_RECORDS: Final = f"/apis/{names.API_VERSION}/namespaces"
_TERMINATING: Final = "NamespaceTerminating"


class KubernetesGateway:
    """`ports.cluster.ManagementCluster` over one API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._effects = Effects(client)
        self._credentials = CredentialObjects(client)
        self._protected = ProtectedObjects(client)
        self._rights = Rights(client)

    async def hold_policies_bound(self) -> bool:
        """Tell whether the admission policies exist with a Deny binding each."""
        return await preconditions.policies_bound(self._client)

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        """Say why a kind cannot be composed here, or None when it can."""
        return await preconditions.definition_problem(self._client, reference)

    async def missing_rights(
        self, *, api_version: str, kind: str, verbs: Sequence[str]
    ) -> tuple[str, ...]:
        """Return which verbs we lack on a kind in all namespaces."""
        return await self._rights.missing(api_version=api_version, kind=kind, verbs=verbs)

    async def hold_namespace(self, namespace: str, *, records: int) -> None:
        """Put the hold label and the record count on a namespace; none off at zero."""
        path = f"/api/v1/namespaces/{namespace}"
        found = await self._client.get(path)
        if found is None:
            return
        metadata = found["metadata"]
        wanted = ("true", str(records)) if records else (None, None)
        held = (metadata.get("labels") or {}).get(names.LABEL_HOLD)
        count = (metadata.get("annotations") or {}).get(names.ANNOTATION_RECORDS)
        if (held, count) == wanted:
            return
        body = {
            "metadata": {
                "uid": metadata["uid"],
                "labels": {names.LABEL_HOLD: wanted[0]},
                "annotations": {names.ANNOTATION_RECORDS: wanted[1]},
            }
        }
        await self._effects.patch(path, body, content_type=MERGE)

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a token Secret exists, by a live GET."""
        return await self._client.get(_secret(namespace, name)) is not None

    async def create_token_secret(self, record: Object, *, name: str, token: IssuedToken) -> None:
        """Create the immutable Secret of one generation; the record's own stays as it is.

        One that an earlier record of this name left behind gives way: its token opens
        nothing any more, and the garbage collector may not have come yet.
        """
        metadata = record["metadata"]
        encoded = base64.b64encode(token.plaintext.reveal().encode()).decode()
        generation = base64.b64encode(str(token.generation).encode()).decode()
        body = {
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
        collection = f"/api/v1/namespaces/{metadata['namespace']}/secrets"
        if await self._effects.create(collection, body):
            return
        found = await self._client.get(f"{collection}/{name}")
        if found is None or not manifests.owned_by(found, metadata["uid"]):
            if found is not None:
                await self._effects.delete(f"{collection}/{name}", uid=found["metadata"]["uid"])
            await self._effects.create(collection, body)

    async def delete_token_secret(self, namespace: str, name: str) -> None:
        """Delete a token Secret; an absent one is success."""
        await self._effects.delete(_secret(namespace, name))

    async def provider_config_holder(self, manifest: dict[str, Any]) -> str | None:
        """Return which credential holds a ProviderConfig's name; None when it is free."""
        found = await self._effects.find(manifest)
        if found is None:
            return None
        annotations = found["metadata"].get("annotations") or {}
        return str(annotations.get(ANNOTATION_CREDENTIAL, "somebody else"))

    async def ensure_provider_config(self, manifest: dict[str, Any]) -> None:
        """Create a ProviderConfig where its kind is served; an existing one stays."""
        path = await self._effects.path_of(manifest)
        if path is not None and await self._client.get(path) is None:
            await self._effects.create(path.rpartition("/")[0], manifest)

    async def delete_provider_config(self, *, api_version: str, namespace: str, name: str) -> None:
        """Delete a ProviderConfig that the broker made; an absent one is success."""
        metadata = {"name": name, "namespace": namespace}
        path = await self._effects.path_of(
            {"apiVersion": api_version, "kind": "ProviderConfig", "metadata": metadata}
        )
        found = None if path is None else await self._client.get(path)
        if path is None or found is None:
            return
        if ANNOTATION_CREDENTIAL in (found["metadata"].get("annotations") or {}):
            await self._effects.delete(path, uid=found["metadata"]["uid"])

    async def provider_config_secret(self, manifest: dict[str, Any]) -> str | None:
        """Return the Secret that a ProviderConfig refers to, or None."""
        return manifests.credentials_secret(await self._effects.find(manifest) or {})

    async def hold_credentials(self, namespace: str, name: str, *, held: bool) -> bool:
        """Put the hold on a Secret and its ExternalSecret, or take it off."""
        return await self._credentials.hold(namespace, name, held=held)

    async def render_external_secret(self, manifest: dict[str, Any]) -> bool:
        """Make our ExternalSecret if it differs; tell whether it is ours and served."""
        return await self._credentials.render(manifest)

    async def external_secret_taken(self, manifest: dict[str, Any]) -> bool:
        """Tell whether an ExternalSecret's name is somebody else's."""
        return await self._credentials.is_taken(manifest)

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

    async def get_object(self, reference: SubstrateReference, namespace: str) -> LiveObject | None:
        """Return a protected object by a live GET, or None when it is gone."""
        return await self._protected.get(reference, namespace)

    async def is_composite(self, reference: SubstrateReference) -> bool:
        """Tell whether an object is one that composes others."""
        return await self._protected.is_composite(reference)

    async def hold_below(
        self, reference: SubstrateReference, namespace: str, *, uid: str, handle: str
    ) -> None:
        """Mark a composite, so that all below it is held."""
        await self._protected.hold_below(reference, namespace, uid=uid, handle=handle)

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Set the released annotation, with the uid as precondition."""
        await self._protected.release(reference, namespace, uid=uid)

    async def let_go(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Take the hold label off, with the uid as precondition; absent is success."""
        await self._protected.let_go(reference, namespace, uid=uid)

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str, foreground: bool = True
    ) -> None:
        """Delete with the uid as precondition; absent is success."""
        await self._protected.delete(reference, namespace, uid=uid, foreground=foreground)

    async def write_status(self, record: Object, status: dict[str, Any]) -> None:
        """Replace a record's status, if the object is still the one that was read.

        Raises:
            StaleAggregateError: The record is gone; another may have its name.
        """
        metadata = record["metadata"]
        path = f"{_record(record)}/status"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            await self._effects.patch(path, patch, content_type=JSON_PATCH)
        except KubernetesError as error:
            if await self._effects.is_stale(error, _record(record), metadata["uid"]):
                raise _stale(metadata["name"]) from error
            raise

    async def delete_loose_record(self, record: Object) -> None:
        """Delete a record that nothing controls, as it was when that was seen."""
        path = _record(record)
        live = await self._client.get(path)
        uid = record["metadata"]["uid"]
        if live is None or live["metadata"]["uid"] != uid or manifests.controller(live) is not None:
            return
        await self._effects.delete(path, uid=uid, version=live["metadata"]["resourceVersion"])

    async def remove_finalizer(self, record: Object) -> None:
        """Take the teardown finalizer off a record; one that is gone is success."""
        path = _record(record)
        live = await self._client.get(path)
        uid = record["metadata"]["uid"]
        if live is None or live["metadata"]["uid"] != uid:
            return
        finalizers = live["metadata"].get("finalizers") or []
        if names.FINALIZER not in finalizers:
            return
        where = f"/metadata/finalizers/{finalizers.index(names.FINALIZER)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": where, "value": names.FINALIZER},
            {"op": "remove", "path": where},
        ]
        try:
            await self._effects.patch(path, patch, content_type=JSON_PATCH)
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
            try:
                await self._effects.create(f"/api/v1/namespaces/{namespace}/events", body)
            except KubernetesError as error:
                if error.status != 404 and _TERMINATING not in error.causes:
                    raise


def _record(record: Object) -> str:
    metadata = record["metadata"]
    return f"{_RECORDS}/{metadata['namespace']}/provisioningrecords/{metadata['name']}"


def _secret(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def _stale(name: str) -> StaleAggregateError:
    message = f"cannot write {names.RECORD_KIND} {name!r}: it is not the object that was read"
    return StaleAggregateError(message)
