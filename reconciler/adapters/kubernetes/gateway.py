"""The effects on one management cluster, each guarded so that a late one is harmless.

Belongs here: the paths, preconditions and idempotency of single calls. Not here: when to
make them. Every write carries a uid, or is create-only by name.
Source: design §2, §5 "Several replicas and several clusters".
"""

from __future__ import annotations

import base64
from typing import Any, Final

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.adapters.kubernetes import events
from reconciler.adapters.kubernetes.client import (
    JSON_PATCH,
    MERGE,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.domain.broker.provider_config import ANNOTATION_CREDENTIAL
from reconciler.domain.broker.release import XRFacts
from reconciler.ports.broker import IssuedToken, LiveObject

POLICIES: Final = ("plexsphere-hold", "plexsphere-hold-children", "plexsphere-hold-records")
_POLICY_ROOT: Final = "/apis/admissionregistration.k8s.io/v1"
_RECORDS: Final = f"/apis/{names.API_VERSION}/namespaces"
_QUERY: Final = {"fieldManager": events.COMPONENT}


class KubernetesGateway:
    """`ports.broker.ManagementCluster` over one API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    async def hold_policies_bound(self) -> bool:
        """Tell whether the admission policies exist with a Deny binding each."""
        for policy in POLICIES:
            path = f"{_POLICY_ROOT}/validatingadmissionpolicies/{policy}"
            if await self._client.get(path) is None:
                return False
        path = f"{_POLICY_ROOT}/validatingadmissionpolicybindings"
        bindings = await self._client.request("GET", path)
        denying = {
            item["spec"]["policyName"]
            for item in bindings.get("items", [])
            if "Deny" in item["spec"].get("validationActions", [])
        }
        return denying.issuperset(POLICIES)

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        """Say why a composite kind cannot be composed here, or None when it can."""
        kind = f"{reference.kind} in {reference.api_version}"
        listing = await self._client.get(f"/apis/{reference.api_version}")
        resources = [] if listing is None else listing.get("resources", [])
        for item in resources:
            if item["kind"] == reference.kind and "/" not in item["name"]:
                if item["namespaced"]:
                    return None
                return f"its XR kind {kind} is cluster-scoped; a namespaced XR can't compose it"
        return f"its XR kind {kind} is not served here; is its XRD established?"

    async def hold_namespace(self, namespace: str, *, records: int) -> None:
        """Put the hold label and the record count on a namespace; none off at zero."""
        path = f"/api/v1/namespaces/{namespace}"
        found = await self._client.get(path)
        if found is None:
            return
        metadata = found["metadata"]
        label = "true" if records else None
        held = (metadata.get("labels") or {}).get(names.LABEL_HOLD)
        count = (metadata.get("annotations") or {}).get(names.ANNOTATION_RECORDS)
        if (held, count) == (label, str(records)):
            return
        body = {
            "metadata": {
                "uid": metadata["uid"],
                "labels": {names.LABEL_HOLD: label},
                "annotations": {names.ANNOTATION_RECORDS: str(records)},
            }
        }
        await self._client.request("PATCH", path, body=body, query=_QUERY, content_type=MERGE)

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a token Secret exists, by a live GET."""
        return await self._client.get(_secret(namespace, name)) is not None

    async def create_token_secret(self, record: Object, *, name: str, token: IssuedToken) -> None:
        """Create the immutable Secret of one generation; an existing one stays."""
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
                "ownerReferences": [_owner(record)],
            },
            "data": {
                names.TOKEN_SECRET_KEY: encoded,
                names.TOKEN_SECRET_GENERATION_KEY: generation,
            },
        }
        await self._create(f"/api/v1/namespaces/{metadata['namespace']}/secrets", body)

    async def delete_token_secret(self, namespace: str, name: str) -> None:
        """Delete a token Secret; an absent one is success."""
        await self._delete(_secret(namespace, name))

    async def provider_config_holder(self, manifest: dict[str, Any]) -> str | None:
        """Return which credential holds a ProviderConfig's name; None when it is free."""
        path = await self._path_of(manifest)
        found = None if path is None else await self._client.get(path)
        if found is None:
            return None
        annotations = found["metadata"].get("annotations") or {}
        return str(annotations.get(ANNOTATION_CREDENTIAL, "somebody else"))

    async def ensure_provider_config(self, manifest: dict[str, Any]) -> None:
        """Create a ProviderConfig where its kind is served; an existing one stays."""
        path = await self._path_of(manifest)
        if path is not None and await self._client.get(path) is None:
            await self._create(path.rpartition("/")[0], manifest)

    async def delete_provider_config(self, *, api_version: str, namespace: str, name: str) -> None:
        """Release and delete a ProviderConfig; an absent one is success."""
        metadata = {"name": name, "namespace": namespace}
        path = await self._path_of(
            {"apiVersion": api_version, "kind": "ProviderConfig", "metadata": metadata}
        )
        if path is not None:
            await self._delete(path)

    async def get_xr_facts(self, xr: XRReference, namespace: str) -> XRFacts:
        """Look up a composite resource, live; another uid under its name is not it."""
        manifest = {
            "apiVersion": xr.api_version,
            "kind": xr.kind,
            "metadata": {"name": xr.name, "namespace": namespace},
        }
        path = await self._path_of(manifest)
        found = None if path is None else await self._client.get(path)
        metadata = {} if found is None else found["metadata"]
        return XRFacts(
            exists=found is not None and metadata["uid"] == xr.uid,
            terminating="deletionTimestamp" in metadata,
            composing_finalizer=names.CROSSPLANE_FINALIZER in (metadata.get("finalizers") or []),
            paused=(metadata.get("annotations") or {}).get(names.PAUSED) == "true",
        )

    async def get_object(self, reference: SubstrateReference, namespace: str) -> LiveObject | None:
        """Return a protected object by a live GET, or None when it is gone."""
        path = await self._path_of(_manifest(reference, namespace))
        found = None if path is None else await self._client.get(path)
        if found is None:
            return None
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        return LiveObject(
            uid=metadata["uid"],
            terminating="deletionTimestamp" in metadata,
            released=annotations.get(names.ANNOTATION_RELEASED) == "true",
        )

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Set the released annotation, with the uid as precondition."""
        path = await self._path_of(_manifest(reference, namespace))
        if path is None:
            return
        metadata = {"uid": uid, "annotations": {names.ANNOTATION_RELEASED: "true"}}
        body = {"metadata": metadata}
        await self._client.request("PATCH", path, body=body, query=_QUERY, content_type=MERGE)

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str
    ) -> None:
        """Delete in the foreground with the uid as precondition; absent is success."""
        path = await self._path_of(_manifest(reference, namespace))
        if path is not None:
            await self._delete(path, propagationPolicy="Foreground", preconditions={"uid": uid})

    async def write_status(self, record: Object, status: dict[str, Any]) -> None:
        """Replace a record's status, if the object is still the one that was read."""
        metadata = record["metadata"]
        path = f"{_record(record)}/status"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "add", "path": "/status", "value": status},
        ]
        await self._client.request("PATCH", path, body=patch, query=_QUERY, content_type=JSON_PATCH)

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
        await self._client.request("PATCH", path, body=patch, query=_QUERY, content_type=JSON_PATCH)

    async def record_event(
        self, record: Object, *, reason: str, message: str, warning: bool = False
    ) -> None:
        """Record an Event on the record and its XR; the name makes it happen once."""
        namespace = record["metadata"]["namespace"]
        for subject in events.subjects(record):
            body = events.manifest(
                subject, namespace, reason=reason, message=message, warning=warning
            )
            await self._create(f"/api/v1/namespaces/{namespace}/events", body)

    async def _create(self, path: str, body: Object) -> None:
        try:
            await self._client.request("POST", path, body=body, query=_QUERY)
        except KubernetesError as error:
            if error.status != 409:
                raise

    async def _delete(self, path: str, **options: Any) -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            await self._client.request("DELETE", path, body=body)
        except KubernetesError as error:
            if error.status != 404:
                raise

    async def _path_of(self, manifest: Object) -> str | None:
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


def _record(record: Object) -> str:
    metadata = record["metadata"]
    return f"{_RECORDS}/{metadata['namespace']}/provisioningrecords/{metadata['name']}"


def _secret(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def _owner(record: Object) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RECORD_KIND,
        "name": record["metadata"]["name"],
        "uid": record["metadata"]["uid"],
    }


def _manifest(reference: SubstrateReference, namespace: str) -> Object:
    return {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "metadata": {"name": reference.name, "namespace": namespace},
    }
