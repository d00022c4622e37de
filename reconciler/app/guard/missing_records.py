"""Aggregates whose record object is gone although nobody asked for their deletion.

Since when each is missing, and whether that is believed. A cache that is wrong, or an API
server that lies, must not take a node out of the mesh: a record counts as gone once two
looks at least SECOND_LOOK_S apart found none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from reconciler.domain.aggregate import ids

SECOND_LOOK_S: Final = 10.0
"""Longer than a watch needs to come back, and short beside the life of a machine."""


class MissingRecords:
    """Since when each is missing.

    Memory is one entry per aggregate that is missing.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since: dict[ids.ProvisionedResourceID, float] = {}
        self._contradicted: set[ids.ProvisionedResourceID] = set()

    def __len__(self) -> int:
        return len(self._since)

    def missed(self, resource: ids.ProvisionedResourceID) -> float:
        """Note that a record is not there; return the seconds until that is believed."""
        now = self._monotonic()
        return max(0.0, self._since.setdefault(resource, now) + SECOND_LOOK_S - now)

    def contradicted(self, resource: ids.ProvisionedResourceID) -> bool:
        """Note that a live look found the record; tell whether one did before.

        Once, it may have been recreated since the cache was read. The cache has as long to
        hear of that as it had for the first look.
        """
        before = resource in self._contradicted
        self._contradicted.add(resource)
        self._since[resource] = self._monotonic()
        return before

    def explained(self, resource: ids.ProvisionedResourceID) -> None:
        """Note that it is there again, or that its deletion was requested."""
        self._since.pop(resource, None)
        self._contradicted.discard(resource)

    def only(self, missing: Collection[ids.ProvisionedResourceID]) -> None:
        """Note which are missing: all others are explained."""
        self._since = {one: at for one, at in self._since.items() if one in missing}
        self._contradicted.intersection_update(missing)
