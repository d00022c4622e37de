"""The effects on one management cluster, each guarded so that a late one is harmless.

The paths, preconditions and idempotency of single calls. Every write carries a uid, most
the resourceVersion that was read, or is create-only by name. Source: design §2, §5 "Several
replicas and several clusters".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.adapters.kubernetes.access import policies
from reconciler.adapters.kubernetes.access.rights import Rights
from reconciler.adapters.kubernetes.namespaces.credentials import CredentialObjects
from reconciler.adapters.kubernetes.namespaces.project_namespace import ProjectNamespaces
from reconciler.adapters.kubernetes.namespaces.project_rights import ProjectRights
from reconciler.adapters.kubernetes.namespaces.provider_configs import ProviderConfigs
from reconciler.adapters.kubernetes.objects import events, health, manifests, xr_facts
from reconciler.adapters.kubernetes.objects.protected_objects import ProtectedObjects
from reconciler.adapters.kubernetes.objects.token_secrets import TokenSecrets
from reconciler.adapters.kubernetes.objects.writes import Effects, MayWrite, anybody
from reconciler.adapters.kubernetes.transport import served_versions
from reconciler.adapters.kubernetes.transport.client import (
    JSON_PATCH,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.domain.protection.provider_config import KIND
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.health import Health
from reconciler.ports.cluster.management_cluster import LiveObject, Needed
from reconciler.ports.store.aggregates import DrawnToken

_RECORDS: Final = f"/apis/{names.API_VERSION}/namespaces"


class KubernetesGateway:
    """`ports.cluster.management_cluster.ManagementCluster` over one API server."""

    def __init__(self, client: KubernetesClient, may_write: MayWrite = anybody) -> None:
        self._client = client
        self._effects = Effects(client, may_write)
        self._tokens = TokenSecrets(client, self._effects)
        self._credentials = CredentialObjects(client, self._effects)
        self._configs = ProviderConfigs(client, self._effects)
        self._protected = ProtectedObjects(client, self._effects)
        self._rights = Rights(client)
        self._own = ProjectRights(client, self._effects)
        self._namespaces = ProjectNamespaces(client, self._effects, self._own)

    async def hold_policies_problem(self) -> str | None:
        """Name the first admission policy that is not in force as it must be, and why."""
        return await policies.problem(self._client)

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        """Say why a kind cannot be composed here, or None when it can."""
        return await served_versions.definition_problem(self._client, reference)

    async def missing_rights(
        self, *, api_version: str, kind: str, verbs: Sequence[str], namespace: str = ""
    ) -> tuple[str, ...]:
        """Return which verbs we lack on a kind, in all namespaces or in one."""
        return await self._rights.missing(
            api_version=api_version, kind=kind, verbs=verbs, namespace=namespace
        )

    async def hold_namespace(
        self, namespace: str, *, records: int, needed: Needed | None = None
    ) -> None:
        """Put the hold label and the record count on a namespace; none off at zero."""
        await self._namespaces.hold(namespace, records=records, needed=needed)

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a token Secret exists, by a live GET."""
        async with self._own.exercised(namespace):
            return await self._tokens.exists(namespace, name)

    async def create_token_secret(self, record: Object, *, name: str, token: DrawnToken) -> bool:
        """Create the immutable Secret of one generation; the record's own stays as it is."""
        async with self._own.exercised(record["metadata"]["namespace"]):
            return await self._tokens.create(record, _record(record), name=name, token=token)

    async def delete_token_secret(self, namespace: str, name: str, *, owner: str) -> None:
        """Delete a token Secret of the record with this uid; another one's stays."""
        async with self._own.exercised(namespace):
            await self._tokens.delete(namespace, name, owner=owner)

    async def provider_config_holder(self, manifest: dict[str, Any]) -> str | None:
        """Return which credential holds a ProviderConfig's name; None when it is free."""
        async with self._own.exercised(manifest["metadata"]["namespace"]):
            return await self._configs.holder(manifest)

    async def ensure_provider_config(self, manifest: dict[str, Any]) -> None:
        """Create a ProviderConfig, or have ours as it should be; another's stays."""
        async with self._own.exercised(manifest["metadata"]["namespace"]):
            await self._configs.ensure(manifest)

    async def delete_provider_config(
        self, *, api_version: str, namespace: str, name: str, needed: Needed | None = None
    ) -> None:
        """Delete a ProviderConfig that the broker made; an absent one is success."""
        metadata = {"name": name, "namespace": namespace}
        manifest = {"apiVersion": api_version, "kind": KIND, "metadata": metadata}
        async with self._own.exercised(namespace):
            await self._configs.delete(manifest, needed)

    async def provider_config_secret(self, manifest: dict[str, Any]) -> str | None:
        """Return the Secret that a ProviderConfig refers to, or None."""
        async with self._own.exercised(manifest["metadata"]["namespace"]):
            return await self._configs.secret(manifest)

    async def hold_credentials(
        self, namespace: str, name: str, *, held: bool, needed: Needed | None = None
    ) -> bool:
        """Put the hold on a Secret and its ExternalSecret, or take it off."""
        async with self._own.exercised(namespace):
            if held:
                return await self._credentials.hold(namespace, name)
            return await self._credentials.let_go(namespace, name, needed=needed)

    async def render_external_secret(self, manifest: dict[str, Any]) -> bool:
        """Make our ExternalSecret if it differs; tell whether it is ours and served."""
        async with self._own.exercised(manifest["metadata"]["namespace"]):
            return await self._credentials.render(manifest)

    async def external_secret_taken(self, manifest: dict[str, Any]) -> bool:
        """Tell whether an ExternalSecret's name is somebody else's."""
        async with self._own.exercised(manifest["metadata"]["namespace"]):
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

    async def health(self, reference: SubstrateReference, namespace: str) -> Health | None:
        """Return what an object says by a live GET; None when it is gone, or of the core group."""
        return await health.read(self._effects, reference, namespace)

    async def is_composite(self, reference: SubstrateReference) -> bool:
        """Tell whether an object is one that composes others."""
        return await self._protected.is_composite(reference)

    async def hold_below(
        self, reference: SubstrateReference, namespace: str, *, live: LiveObject, handle: str
    ) -> None:
        """Mark a composite as it was looked at, so that all below it is held."""
        await self._protected.hold_below(reference, namespace, live=live, handle=handle)

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
        """Replace a record's status, if nobody wrote to the record since it was read."""
        await self._effects.write_status(_record(record), record, status)

    async def record_stands(self, record: Object) -> bool:
        """Tell whether a record is there under its uid, as living as it was read."""
        live = await self._client.get(_record(record))
        metadata, read = {} if live is None else live["metadata"], record["metadata"]
        going = "deletionTimestamp" in metadata and "deletionTimestamp" not in read
        return metadata.get("uid") == read["uid"] and not going

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
            await events.record(self._effects, body)


def _record(record: Object) -> str:
    metadata = record["metadata"]
    return f"{_RECORDS}/{metadata['namespace']}/provisioningrecords/{metadata['name']}"
