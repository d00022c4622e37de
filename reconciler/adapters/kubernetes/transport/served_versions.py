"""Discovers which versions of a kind an API server serves.

Reading served kinds.
"""

from __future__ import annotations

from function.contract import names
from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object, group_path


async def definition_problem(client: KubernetesClient, reference: SubstrateReference) -> str | None:
    """Say why a kind cannot be composed here, or None when it can."""
    kind = f"{reference.kind} in {reference.api_version}"
    listing = await client.get(group_path(reference.api_version))
    resources = [] if listing is None else listing.get("resources") or []
    for item in resources:
        if item["kind"] == reference.kind and "/" not in item["name"]:
            if item["namespaced"]:
                return None
            return f"its kind {kind} is cluster-scoped; a namespaced XR cannot compose it"
    return f"its kind {kind} is not served; check that its CRD or XRD is established"


async def serves(client: KubernetesClient, manifest: Object) -> bool:
    """Tell whether a manifest's kind is served in its version, asked live."""
    listing = await client.get(group_path(manifest["apiVersion"]))
    resources = (listing or {}).get("resources") or []
    return any(item["kind"] == manifest["kind"] for item in resources)


async def serving_version(client: KubernetesClient, manifest: Object) -> str | None:
    """Return the first apiVersion of a manifest's group that serves its kind, or None.

    A provider that has dropped a version still serves its objects in another one.
    """
    group = names.group_of(manifest["apiVersion"])
    # The core group has one version, and no listing of them under this path.
    found = await client.get(f"/apis/{group}") if group else None
    for item in (found or {}).get("versions") or []:
        if await serves(client, {**manifest, "apiVersion": item["groupVersion"]}):
            return str(item["groupVersion"])
    return None
