"""Kubernetes Events of a record and its XR.

Belongs here: their manifests, with names that make each happen once. Not here: when they
are recorded. Source: Crossplane contributing guide, "Events when something happens".
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final

from function.contract import names
from reconciler.adapters.kubernetes.client import Object
from reconciler.adapters.kubernetes.effects import FIELD_MANAGER

COMPONENT: Final = FIELD_MANAGER
"""Who says so."""

MESSAGE_MAX: Final = 1024
"""Longest message an Event may carry, in characters (Kubernetes API)."""

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


def manifest(
    subject: Object, namespace: str, *, reason: str, message: str, warning: bool
) -> Object:
    """Render an Event of now whose name follows from subject, reason and message."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = hashlib.sha256(f"{subject['uid']}/{reason}/{message}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{subject['name'][:NAME_HEAD_MAX]}.{digest}", "namespace": namespace},
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
