"""What drives one management cluster: changes in, ticks out, a sweep as the safety net.

Belongs here: turning keys into ticks and listing what must be looked at. Not here: what a
tick does. One bad object never stops the others: the queue isolates it.
Source: seed 000 "Operational model" (boot sweep, steady-state ticker); design §5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from function.contract.conditions import ConditionType, is_true
from reconciler.app.broker_tick import Tick
from reconciler.app.project_tick import ProjectTick
from reconciler.app.teardown import Teardown
from reconciler.app.work_queue import (
    AggregateKey,
    CredentialKey,
    Key,
    ProjectKey,
    RecordKey,
    SiblingsKey,
    WorkQueue,
    describe,
)
from reconciler.domain.broker import ids
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.ports.broker import BrokerRepository

_log = logging.getLogger(__name__)

VANISHED_MAX = 3
"""Records that may be gone at once without a deletion; more freeze what is without one."""

WORKERS = 16
"""Ticks at once: each waits on Postgres or the API server most of its time."""

View = Mapping[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalView:
    """The cached objects of one cluster, by namespace and name."""

    records: Callable[[], View]
    projects: Callable[[], View]


class Driver:
    """Runs the ticks of one management cluster."""

    def __init__(
        self,
        *,
        view: LocalView,
        repository: BrokerRepository,
        tick: Tick,
        teardown: Teardown,
        project_tick: ProjectTick,
        cluster_id: ids.ManagementClusterID,
    ) -> None:
        self._cluster_id = cluster_id
        self._view = view
        self._repository = repository
        self._tick = tick
        self._teardown = teardown
        self._project_tick = project_tick
        self.queue = WorkQueue(self._work, workers=WORKERS)
        self._faults: dict[str, str] = {}
        self._frozen = False

    def changed(self, kind: str, key: tuple[str, str]) -> None:
        """Hear of a change in a cache; what it may unblock is looked at again."""
        match kind:
            case "provisioningrecords":
                self.queue.add(RecordKey(namespace=key[0], name=key[1]))
            case "projects":
                self.queue.add(ProjectKey(name=key[1]))
                self._unadmitted()
            case "domains":
                for _, name in self._view.projects():
                    self.queue.add(ProjectKey(name=name))
            case _:
                self._unadmitted()

    @property
    def sweep_fault(self) -> str | None:
        """What the last sweeps died of, in one line; None when each ended well."""
        return "; ".join(self._faults.values()) or None

    def registered(self, resource_id: ids.ProvisionedResourceID) -> None:
        """Hear that a node registered for an aggregate."""
        self.queue.add(AggregateKey(id=str(resource_id)))

    async def sweep_projects(self) -> int:
        """Ask for every Project once.

        Returns:
            How many keys were asked for.
        """
        keys = [ProjectKey(name=name) for _, name in self._view.projects()]
        for key in keys:
            self.queue.add(key)
        return len(keys)

    async def sweep_records(self) -> int:
        """Ask for every record, vanished aggregate, credential that is held, and loose sibling.

        Returns:
            How many keys were asked for.
        """
        records = self._view.records()
        keys: list[Key] = [RecordKey(namespace=namespace, name=name) for namespace, name in records]
        unfinished = [
            resource
            for resource in await self._repository.list_unfinished()
            if resource.management_cluster_id == self._cluster_id
        ]
        vanished = [resource for resource in unfinished if not _has_record(records, resource)]
        keys += _credentials(unfinished, loose=await self._tick.credentials.loose())
        keys += [AggregateKey(id=str(resource.id)) for resource in vanished]
        keys += [SiblingsKey(id=str(resource.id)) for resource in await self._unsettled()]
        self._brake(vanished)
        for key in keys:
            self.queue.add(key)
        return len(keys)

    async def run(self, *, broker_interval: timedelta, fleet_interval: timedelta) -> None:
        """Work and sweep until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run())
            group.create_task(self._ticker(self.sweep_records, broker_interval))
            group.create_task(self._ticker(self.sweep_projects, fleet_interval))

    async def _ticker(self, sweep: Callable[[], Awaitable[int]], interval: timedelta) -> None:
        while True:
            await asyncio.sleep(interval.total_seconds())
            try:
                await sweep()
                self._faults.pop(sweep.__name__, None)
            except Exception as error:  # noqa: BLE001 - the next sweep tries again
                self._faults[sweep.__name__] = describe(error)
                _log.warning("sweep_failed sweep=%s error=%s", sweep.__name__, describe(error))

    async def _work(self, key: Key) -> float | None:
        match key:
            case ProjectKey():
                project = self._view.projects().get(("", key.name))
                return None if project is None else await self._project_tick.run(project)
            case RecordKey():
                return await self._record(key)
            case AggregateKey():
                return await self._aggregate(key)
            case SiblingsKey():
                return await self._teardown.part(ids.ProvisionedResourceID(UUID(key.id)))
            case CredentialKey():
                await self._tick.credentials.settle(key.namespace, key.credential)
                return None

    async def _record(self, key: RecordKey) -> float | None:
        raw = self._view.records().get((key.namespace, key.name))
        if raw is not None:
            return await self._tick.run(raw)
        for resource in await self._repository.list_in_namespace(key.namespace):
            if resource.record.name == key.name:
                self.queue.add(AggregateKey(id=str(resource.id)))
        for resource in await self._unsettled():
            if resource.record.name == key.name and resource.key.namespace == key.namespace:
                self.queue.add(SiblingsKey(id=str(resource.id)))
        return None

    async def _unsettled(self) -> list[ProvisionedResource]:
        return [
            resource
            for resource in await self._repository.list_unsettled()
            if resource.management_cluster_id == self._cluster_id
        ]

    def _brake(self, vanished: Sequence[ProvisionedResource]) -> None:
        """Freeze when records vanished in numbers: that is a lost cluster, not a deletion."""
        unasked = [item for item in vanished if item.deletion_requested_at is None]
        frozen = len(unasked) > VANISHED_MAX
        if frozen and not self._frozen:
            _log.error("frozen vanished=%d: records are gone that nobody deleted", len(unasked))
        self._frozen = frozen

    async def _aggregate(self, key: AggregateKey) -> float | None:
        resource = await self._repository.get(ids.ProvisionedResourceID(UUID(key.id)))
        if _has_record(self._view.records(), resource):
            where = resource.key
            self.queue.add(RecordKey(namespace=where.namespace, name=resource.record.name))
            return None
        if self._frozen and resource.deletion_requested_at is None:
            return None
        return await self._teardown.run_vanished(resource)

    def _unadmitted(self) -> None:
        for (namespace, name), raw in self._view.records().items():
            if not is_true(raw.get("status") or {}, ConditionType.ADMITTED):
                self.queue.add(RecordKey(namespace=namespace, name=name))


def _credentials(
    unfinished: Sequence[ProvisionedResource], *, loose: Sequence[tuple[str, str]]
) -> set[CredentialKey]:
    """Name each credential in use once: its Secret may have come, or lost its hold.

    And each that nobody uses any more while something of it is still held.
    """
    used = {
        (resource.key.namespace, resource.accepted.cloud_credential)
        for resource in unfinished
        if resource.accepted.cloud_credential is not None
    }
    return {
        CredentialKey(namespace=namespace, credential=credential)
        for namespace, credential in used.union(loose)
    }


def _has_record(records: View, resource: ProvisionedResource) -> bool:
    """Tell whether a record of its name is there, its own or a successor to be adopted."""
    return (resource.key.namespace, resource.record.name) in records
