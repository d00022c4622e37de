"""Small pieces of manifests that the gateway writes and reads.

Names and owners as plain dicts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.adapters.kubernetes.transport.client import Object
from reconciler.domain.aggregate.errors import GoingError

_DEPTH_MAX: Final = 16
"""Deeper than any manifest of ours."""


def owned_by(found: Object, uid: str) -> bool:
    """Tell whether an object belongs to the owner with this uid."""
    owners = found["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == uid for owner in owners)


def manifest(reference: SubstrateReference, namespace: str) -> Object:
    """Name an object of any kind as a manifest does."""
    return {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "metadata": {"name": reference.name, "namespace": namespace},
    }


def controller(found: Object) -> XRReference | None:
    """Return an object's controlling owner, or None."""
    for item in found["metadata"].get("ownerReferences") or []:
        if item.get("controller"):
            return XRReference(
                api_version=item["apiVersion"],
                kind=item["kind"],
                name=item["name"],
                uid=item["uid"],
            )
    return None


def deleting_since(found: Object) -> datetime | None:
    """Return an object's deletionTimestamp, or None."""
    at = found["metadata"].get("deletionTimestamp")
    return None if at is None else datetime.fromisoformat(at)


def owner(record: Object) -> Object:
    """Return a record as an owner; it blocks nothing."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RECORD_KIND,
        "name": record["metadata"]["name"],
        "uid": record["metadata"]["uid"],
    }


def credentials_secret(provider_config: Object) -> str | None:
    """Return the Secret that a ProviderConfig of the seeds' shape refers to, or None."""
    credentials = (provider_config.get("spec") or {}).get("credentials") or {}
    name = (credentials.get("secretRef") or {}).get("name")
    # Another Secret is not ours to let go, whatever somebody wrote into a ProviderConfig.
    ours = isinstance(name, str) and names.is_cloud_credentials_secret(name)
    return str(name) if ours else None


def is_released(found: Object) -> bool:
    """Tell whether an object says that it may be deleted though it is held."""
    return names.ANNOTATION_RELEASED in (found["metadata"].get("annotations") or {})


def refuse_going(found: Object, kind: str) -> None:
    """Refuse to take what is being deleted.

    Raises:
        GoingError: It is; names what it waits for.
    """
    metadata = found["metadata"]
    if "deletionTimestamp" in metadata:
        raise GoingError(kind, metadata["name"], tuple(metadata.get("finalizers") or ()))


def holds(found: Any, wanted: Any, depth: int = 0) -> bool:
    """Tell whether all that is wanted is there; the server has added its defaults."""
    if depth > _DEPTH_MAX:  # pragma: no cover - manifests of ours are six deep
        return False
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and holds(found[key], value, depth + 1) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(holds(a, b, depth + 1) for a, b in zip(found, wanted, strict=True))
        )
    return bool(found == wanted)
