"""Reads the facts that a teardown needs off a composite resource.

Reading the one object. Source: Crossplane, "Composite Resources", conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from function.contract import names
from reconciler.adapters.kubernetes.transport.client import Object
from reconciler.domain.teardown.release import XRFacts

_SETTLED: Final = ("Synced", "Ready")
_GONE: Final = XRFacts(exists=False, terminating=False, composing_finalizer=False, paused=False)


def facts(found: Object | None, uid: str) -> XRFacts:
    """Return what a live GET says; another uid under the name is not it.

    Args:
        found: The object, or None.
        uid: Which one is meant; empty for whichever has the name.
    """
    if found is None or uid not in ("", found["metadata"]["uid"]):
        return _GONE
    metadata = found["metadata"]
    return XRFacts(
        exists=True,
        terminating="deletionTimestamp" in metadata,
        composing_finalizer=names.CROSSPLANE_FINALIZER in (metadata.get("finalizers") or []),
        paused=(metadata.get("annotations") or {}).get(names.PAUSED) == "true",
        settled_at=_settled_at(found.get("status") or {}, metadata.get("generation")),
    )


def _settled_at(status: Mapping[str, Any], generation: object) -> datetime | None:
    said = {item.get("type"): item for item in status.get("conditions") or []}
    since = [_since(said.get(name) or {}, generation) for name in _SETTLED]
    known = [at for at in since if at is not None]
    return max(known) if len(known) == len(since) else None


def _since(condition: Mapping[str, Any], generation: object) -> datetime | None:
    """Return since when a condition holds for what the object is now; None when it does not."""
    stale = condition.get("observedGeneration") not in (None, generation)
    if condition.get("status") != "True" or stale:
        return None
    try:
        found = datetime.fromisoformat(str(condition.get("lastTransitionTime", "")))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
