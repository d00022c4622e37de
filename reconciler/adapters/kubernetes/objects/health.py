"""Reads the conditions of live objects.

Reading conditions out of an object. Nothing but conditions and references is kept of what
is read: a managed resource holds its machine's user data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from function.contract.conditions import ObservedCondition
from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.objects import composites, manifests
from reconciler.adapters.kubernetes.objects.writes import Effects
from reconciler.adapters.kubernetes.transport.client import KubernetesError, Object
from reconciler.ports.cluster.health import Health
from reconciler.ports.cluster.substrates import NotAllowedError

_CONDITIONS_MAX: Final = 32
"""Conditions that are read of one object; providers write two to five."""


async def read(effects: Effects, reference: SubstrateReference, namespace: str) -> Health | None:
    """Return what an object says by a live GET; as `ports.cluster.health.HealthReader.health`."""
    if "/" not in reference.api_version:
        return None
    try:
        found = await effects.find_served(manifests.manifest(reference, namespace))
    except KubernetesError as error:
        if error.status != 403:
            raise
        message = (
            f"cannot get {reference.kind} {reference.name!r}: it is forbidden to the reconciler"
        )
        raise NotAllowedError(message) from error
    if found is None:
        return None
    return Health(conditions=_conditions(found), below=composites.below(found))


def _conditions(found: Object) -> Mapping[str, ObservedCondition]:
    status = found.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    said: dict[str, ObservedCondition] = {}
    for item in listed[:_CONDITIONS_MAX] if isinstance(listed, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("type"), str):
            words = [str(item.get(part, "")) for part in ("status", "reason", "message")]
            said.setdefault(
                item["type"], ObservedCondition(status=words[0], reason=words[1], message=words[2])
            )
    return said
