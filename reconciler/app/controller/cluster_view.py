"""The controller's view of one management cluster: caches and circuit breaker.

The controller's way to its caches, and to what judges them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.app.guard.circuit_breaker import CircuitBreaker
from reconciler.app.queue.keys import RecordKey
from reconciler.domain.aggregate.resource import ProvisionedResource

View = Mapping[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cached objects of one cluster, by namespace and name.

    Attributes:
        version_of: A record's resourceVersion without reading the record; None reads it.
        record_exists: Whether a record is there by a live GET; None trusts the cache.
        list_anew: Hears that the cached records are wrong; a list of them follows.
        breaker: Whether what is seen is believed.
    """

    records: Callable[[], View]
    projects: Callable[[], View]
    version_of: Callable[[tuple[str, str]], str | None] | None = None
    record_exists: Callable[[str, str], Awaitable[bool]] | None = None
    list_anew: Callable[[], None] = lambda: None
    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker(time.monotonic))

    def version(self, key: RecordKey) -> str:
        """Return a record's resourceVersion; empty when it has none."""
        where = (key.namespace, key.name)
        if self.version_of is not None:
            return self.version_of(where) or ""
        raw = self.records().get(where) or {}
        return str((raw.get("metadata") or {}).get("resourceVersion") or "")

    def leaving(self, namespace: str) -> list[str]:
        """Name the records of a namespace that are being deleted."""
        records = self.records()
        here = [key for key in records if key[0] == namespace]
        return [
            key[1]
            for key in here
            if "deletionTimestamp" in (records.get(key) or {}).get("metadata", {})
        ]

    def has_record(self, resource: ProvisionedResource) -> bool:
        """Tell whether a record speaks for it: its own, or a successor to be adopted.

        What is going is adopted by none: a successor of its name starts again beside it.
        """
        raw = self.records().get((resource.key.namespace, resource.record.name))
        if raw is None or resource.deletion_requested_at is None:
            return raw is not None
        return bool(raw["metadata"]["uid"] == resource.record.uid)
