"""What is held for credentials, remembered in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from function.contract.strategy import Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import AssignmentNotFoundError
from reconciler.domain.protection.shared_hold import SharedHold
from reconciler.ports.store.aggregates import LOOSE_MAX
from tests.fakes.memory import MemoryStore


class InMemoryHoldLedger:
    """Keeps the promises of `ports.store.aggregates.HoldLedger`."""

    def __init__(
        self,
        store: MemoryStore,
        cluster_id: ids.ManagementClusterID,
        *,
        check_placement: bool = False,
    ) -> None:
        self.store = store
        self._cluster_id = cluster_id
        self._check_placement = check_placement
        self._loose_after: tuple[str, str] | None = None

    async def remember(self, hold: SharedHold) -> None:
        if self._check_placement and self._cluster_id not in self.store.clusters:
            message = "cannot remember hold: its management cluster is not stored"
            raise AssignmentNotFoundError(message)
        key = self._key(hold)
        known = self.store.holds.get(key)
        if known is None:
            self.store.holds[key] = replace(hold, revision=0)
        elif key in self.store.loosened:
            self.store.loosened.discard(key)
            self.store.holds[key] = replace(hold, revision=known.revision + 1)

    async def loosen(self, hold: SharedHold) -> SharedHold | None:
        key = self._key(hold)
        if self.store.holds.get(key) != hold:
            return None
        self.store.loosened.add(key)
        self.store.holds[key] = replace(hold, revision=hold.revision + 1)
        return self.store.holds[key]

    async def list_in_namespace(self, namespace: str) -> Sequence[SharedHold]:
        mine = (
            hold
            for (cluster_id, _), hold in self.store.holds.items()
            if cluster_id == self._cluster_id and hold.namespace == namespace
        )
        return sorted(mine, key=_order)

    async def forget(self, hold: SharedHold) -> None:
        key = self._key(hold)
        if self.store.holds.get(key) == hold and key in self.store.loosened:
            del self.store.holds[key]
            self.store.loosened.discard(key)

    async def list_loose(self) -> Sequence[tuple[str, str]]:
        used = {
            (resource.key.namespace, resource.accepted.cloud_credential)
            for resource in self.store.resources.values()
            if resource.phase is not Phase.DELETED
            and resource.management_cluster_id == self._cluster_id
        }
        mine = (
            (hold.namespace, hold.credential)
            for (cluster_id, _), hold in self.store.holds.items()
            if cluster_id == self._cluster_id
        )
        loose = list(dict.fromkeys(pair for pair in mine if pair not in used))
        after, self._loose_after = self._loose_after, None
        page = loose[loose.index(after) + 1 if after in loose else 0 :][:LOOSE_MAX]
        if len(page) == LOOSE_MAX:
            self._loose_after = page[-1]
        return page

    def _key(self, hold: SharedHold) -> tuple[ids.ManagementClusterID, SharedHold]:
        return self._cluster_id, replace(hold, revision=0)


def _order(hold: SharedHold) -> tuple[str, ...]:
    return hold.api_version, hold.kind, hold.name, hold.credential
