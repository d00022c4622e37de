"""What is held for credentials, remembered in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from function.contract.strategy import Phase
from reconciler.domain.broker import ids
from reconciler.domain.broker.errors import AssignmentNotFoundError
from reconciler.domain.broker.shared_hold import SharedHold
from reconciler.ports.broker import LOOSE_MAX
from tests.fakes.memory import MemoryStore


class InMemoryHoldLedger:
    """Keeps the promises of `ports.broker.HoldLedger`."""

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

    async def remember(self, hold: SharedHold) -> None:
        if self._check_placement and self._cluster_id not in self.store.clusters:
            message = "cannot remember hold: its management cluster is not stored"
            raise AssignmentNotFoundError(message)
        known = self.store.holds.get(self._key(hold))
        revision = 0 if known is None else known.revision + 1
        self.store.holds[self._key(hold)] = replace(hold, revision=revision)

    async def list_in_namespace(self, namespace: str) -> Sequence[SharedHold]:
        mine = (
            hold
            for (cluster_id, _), hold in self.store.holds.items()
            if cluster_id == self._cluster_id and hold.namespace == namespace
        )
        return sorted(mine, key=_order)

    async def forget(self, hold: SharedHold) -> None:
        if self.store.holds.get(self._key(hold)) == hold:
            del self.store.holds[self._key(hold)]

    async def list_loose(self) -> Sequence[tuple[str, str]]:
        used = {
            (resource.key.namespace, resource.accepted.cloud_credential)
            for resource in self.store.resources.values()
            if resource.phase is not Phase.DELETED
        }
        mine = (
            (hold.namespace, hold.credential)
            for (cluster_id, _), hold in self.store.holds.items()
            if cluster_id == self._cluster_id
        )
        loose = dict.fromkeys(pair for pair in mine if pair not in used)
        return list(loose)[:LOOSE_MAX]

    def _key(self, hold: SharedHold) -> tuple[ids.ManagementClusterID, SharedHold]:
        return self._cluster_id, replace(hold, revision=0)


def _order(hold: SharedHold) -> tuple[str, ...]:
    return hold.api_version, hold.kind, hold.name, hold.credential
