"""Kubernetes Events, of a record and its XR above all.

Their manifests, with names that make each happen once, and the one write. Source:
Crossplane contributing guide, "Events when something happens".
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Final

from function.contract import names
from reconciler.adapters.kubernetes.objects.writes import FIELD_MANAGER, Effects
from reconciler.adapters.kubernetes.transport.client import KubernetesError, Object

COMPONENT: Final = FIELD_MANAGER
"""Who says so."""

MESSAGE_MAX: Final = 1024
"""Longest message an Event may carry, in characters (Kubernetes API)."""

_TERMINATING: Final = "NamespaceTerminating"

NAME_HEAD_MAX: Final = 200
"""How much of a subject's name an Event's name begins with; names end at 253."""


def subjects(record: Object) -> list[Object]:
    """Return what an Event is about: the record, and the XR it declares."""
    found = [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.RECORD_KIND,
            "name": record["metadata"]["name"],
            "uid": record["metadata"]["uid"],
        }
    ]
    declared = ((record.get("spec") or {}).get("declaration") or {}).get("xr")
    return [*found, declared] if declared else found


async def record(effects: Effects, event: Object) -> None:
    """Create an Event; one that is there, and a namespace that takes none any more, are success.

    Raises:
        KubernetesError: Any other refusal.
        UnreachableError: The connection failed.
    """
    try:
        await effects.create(f"/api/v1/namespaces/{event['metadata']['namespace']}/events", event)
    except KubernetesError as error:
        if error.status != 404 and _TERMINATING not in error.causes:
            raise


def _head(name: str) -> str:
    """Return what an Event's name may begin with; RBAC's names may hold a colon."""
    return re.sub(r"[^a-z0-9.-]", "-", name.lower())[:NAME_HEAD_MAX].strip("-.") or "event"


def manifest(
    subject: Object, namespace: str, *, reason: str, message: str, warning: bool
) -> Object:
    """Render an Event of now whose name follows from subject, reason and message."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = hashlib.sha256(f"{subject['uid']}/{reason}/{message}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{_head(subject['name'])}.{digest}", "namespace": namespace},
        "involvedObject": {**subject, "namespace": namespace},
        "reason": reason,
        "message": message[:MESSAGE_MAX],
        "type": "Warning" if warning else "Normal",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }
