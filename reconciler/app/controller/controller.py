"""Drives one management cluster: changes in, reconciles out, a sweep as the safety net.

Turning changes into keys and keys into reconciles. One bad object never stops the others: the
queue isolates it. Source: seed 000 "Operational model" (boot sweep, steady-state ticker);
design §5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from function.contract.conditions import ConditionType, Reason, find, is_true
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.refused_records import RefusedRecords
from reconciler.app.controller.sweep import IN_TURN, Sweep, pause
from reconciler.app.controller.ticker import Ticker
from reconciler.app.converge.reconciler import Reconciler
from reconciler.app.guard.missing_records import SECOND_LOOK_S
from reconciler.app.projects.project_reconciler import ProjectReconciler
from reconciler.app.queue.fair_queue import Rank
from reconciler.app.queue.keys import (
    AggregateKey,
    CredentialKey,
    Key,
    NamespaceKey,
    ProjectKey,
    RecordKey,
    SiblingsKey,
)
from reconciler.app.queue.work_queue import WorkQueue
from reconciler.app.teardown.teardown import Teardown
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.guard.circuit_breaker import BreakerCause
from reconciler.ports.controller import ControllerState, Worked
from reconciler.ports.store.aggregates import BrokerRepository

WORKERS: Final = 16
"""Ticks at once: each waits on Postgres or the API server most of its time."""

WATCHFUL: Final = timedelta(seconds=5)
"""How often evidence is judged, Postgres asked for a thaw, and a write to Postgres tried."""

THAW_LASTS: Final = timedelta(minutes=10)
"""How long a thaw counts: time to work off what vanished, not a licence."""


class Controller:
    """Runs the reconciles of one management cluster."""

    def __init__(
        self,
        *,
        view: ClusterView,
        repository: BrokerRepository,
        reconciler: Reconciler,
        teardown: Teardown,
        project_reconciler: ProjectReconciler,
        cluster_id: ids.ManagementClusterID,
    ) -> None:
        self._cluster_id = cluster_id
        self._view = view
        self._repository = repository
        self._reconciler = reconciler
        reconciler.namespaces.leaving = view.leaving
        self._teardown = teardown
        self._project_reconciler = project_reconciler
        self.breaker = view.breaker
        self.queue = WorkQueue(self._work, workers=WORKERS)
        self.sweep = Sweep(view, repository, cluster_id)
        self.ticker = Ticker()
        self._refused = RefusedRecords(partial(self.queue.add, rank=Rank.ROUTINE))
        self._lost: dict[RecordKey, bool] = {}
        self._turn, self._frozen = 0, False

    def changed(self, kind: str, key: tuple[str, str]) -> None:
        """Hear of a change in a cache; what it may unblock is looked at again."""
        match kind:
            case "provisioningrecords":
                self._record_changed(RecordKey(namespace=key[0], name=key[1]))
            case "projects":
                self.queue.add(ProjectKey(name=key[1]))
                self._refused.ask_again()
            case "domains":
                for _, name in self._view.projects():
                    self.queue.add(ProjectKey(name=name))
            case _:
                self._refused.ask_again()

    @property
    def sweep_fault(self) -> str | None:
        """What the last sweeps died of, in one line; None when each ended well."""
        return self.ticker.fault

    @property
    def state(self) -> ControllerState:
        """What there is to say of this controller just now."""
        mode = self.breaker.mode
        return ControllerState(
            worked={
                which: Worked(runs=tally.runs, seconds=tally.seconds)
                for which, tally in self.queue.tallies.items()
            },
            waiting=self.queue.depth,
            failing=self.queue.failing,
            aggregates=self.breaker.aggregates,
            settled=self.sweep.settled,
            missing=len(self.breaker.missing),
            causes=mode.causes if mode.frozen else frozenset(),
        )

    def registered(self, resource_id: ids.ProvisionedResourceID) -> None:
        """Note that a node registered for an aggregate."""
        self.queue.add(AggregateKey(id=str(resource_id)), rank=Rank.URGENT)

    async def sweep_projects(self, *, gently: bool = False) -> int:
        """Ask for the next Projects in turn, all of them in some sweeps; return how many.

        Args:
            gently: Leave most of the time to what changed.
        """
        names = sorted(name for _, name in self._view.projects())
        # What is new or not Ready comes by itself; at the start nothing is known yet.
        size = len(names) if self._turn == 0 else IN_TURN
        start = self._turn if self._turn < len(names) else 0
        self._turn = start + size
        due = [ProjectKey(name=name) for name in names[start : start + size]]
        return await self._hand_out(due, gently=gently)

    async def sweep_records(self, *, gently: bool = False) -> int:
        """Ask for what changed unnoticed, what vanished, and what is held for nobody.

        Args:
            gently: Leave most of the time to what changed.

        Returns:
            How many keys were asked for.
        """
        loose = await self._reconciler.credentials.loose()
        # All of it is read before anything is waited for: what was seen is compared at one time.
        due = [key async for key in self.sweep.keys(loose=loose)]
        return await self._hand_out(due, gently=gently)

    async def _hand_out(self, due: Sequence[Key], *, gently: bool) -> int:
        for asked, key in enumerate(due, start=1):
            self._ask(key, Rank.ROUTINE if gently else Rank.CHANGED)
            await pause(asked, of=len(due), gently=gently)
        return len(due)

    async def run(self, *, broker_interval: timedelta, fleet_interval: timedelta) -> None:
        """Work and sweep until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run())
            for name, look, interval in (
                ("sweep_records", partial(self.sweep_records, gently=True), broker_interval),
                ("sweep_projects", partial(self.sweep_projects, gently=True), fleet_interval),
                ("watch", self.watch, WATCHFUL),
                ("write", self._repository.prove_writable, WATCHFUL),
            ):
                group.create_task(self.ticker.run(name, look, interval))

    async def watch(self) -> None:
        """Ask for what is uncounted, judge the evidence, let a thaw count.

        Raises:
            StoreUnavailableError: Postgres does not answer, which is evidence, too.
        """
        for namespace in sorted(self._reconciler.namespaces.uncounted):
            self.queue.add(NamespaceKey(namespace=namespace))
        try:
            accepted = await self._repository.thawed(self._cluster_id, within=THAW_LASTS)
        except Exception:
            self.breaker.stored(well=False)
            self.breaker.judge()
            raise
        self.breaker.stored(well=True)
        self.breaker.accept(wanted=accepted)
        before, self._frozen = self._frozen, self.breaker.judge()
        mode = self.breaker.mode
        if BreakerCause.RECORDS_VANISHED in mode.causes and mode.calm_since is None:
            self._view.list_anew()
        if before and not self._frozen:
            await self.sweep_records()

    async def _work(self, key: Key) -> float | None:
        match key:
            case ProjectKey():
                project = self._view.projects().get(("", key.name))
                return None if project is None else await self._project_reconciler.run(project)
            case RecordKey():
                return await self._record(key)
            case AggregateKey():
                return await self._aggregate(key)
            case SiblingsKey():
                gone = await self._ours(key)
                return None if gone is None else await self._teardown.part(gone.id)
            case CredentialKey():
                await self._reconciler.credentials.settle(key.namespace, key.credential)
                await self._reconciler.configs.follow(key.namespace, key.credential)
            case NamespaceKey():
                await self._reconciler.namespaces.settle(key.namespace)
        return None

    async def _record(self, key: RecordKey) -> float | None:
        raw = self._view.records().get((key.namespace, key.name))
        if raw is not None:
            self._read(key, raw)
            again = await self._reconciler.run(raw)
            self.sweep.worked_off(key, resting=again is None)
            return again
        where = {"namespace": key.namespace, "record": key.name}
        for seen in await self._repository.sightings_of(self._cluster_id, **where):
            self._ask(AggregateKey(id=str(seen.id), namespace=key.namespace))
        for each in await self._repository.unsettled(self._cluster_id, **where):
            self._ask(SiblingsKey(id=str(each), namespace=key.namespace))
        return None

    async def _ours(self, key: AggregateKey | SiblingsKey) -> ProvisionedResource | None:
        """Return an aggregate; None when it is another cluster's, whose nodes ring here, too."""
        resource = await self._repository.get(ids.ProvisionedResourceID(UUID(key.id)))
        return resource if resource.management_cluster_id == self._cluster_id else None

    async def _aggregate(self, key: AggregateKey) -> float | None:
        resource = await self._ours(key)
        if resource is None:
            return None
        if self._view.has_record(resource):
            self.breaker.missing.explained(resource.id)
            record = RecordKey(namespace=resource.key.namespace, name=resource.record.name)
            self._ask(record, rank=Rank.URGENT)
            return None
        if resource.deletion_requested_at is not None:
            self.breaker.missing.explained(resource.id)
            return await self._teardown.run_missing(resource)
        return await self._unasked(resource)

    async def _unasked(self, resource: ProvisionedResource) -> float | None:
        """Believe that a record is gone, or wait; the sweep comes back to it after a freeze."""
        wait_s = self.breaker.missing.missed(resource.id)
        if self.breaker.judge():
            return None
        if wait_s > 0:
            return wait_s
        exists = self._view.record_exists
        if exists is not None and await exists(resource.key.namespace, resource.record.name):
            if self.breaker.missing.contradicted(resource.id):
                self.breaker.doubted(BreakerCause.CACHE_STALE)
                self._view.list_anew()
            return SECOND_LOOK_S
        again = await self._teardown.run_missing(resource)
        now = await self._repository.get(resource.id)
        if now.deletion_requested_at is not None:
            self.breaker.gave_up(resource.id)
        return again

    def _record_changed(self, key: RecordKey) -> None:
        raw = self._view.records().get((key.namespace, key.name))
        if raw is None:
            self._refused.discard(key)
            self._lost.pop(key, None)
            self.queue.add(key, rank=Rank.URGENT)
            return
        self._read(key, raw)
        self._ask(key, raw=raw)

    def _read(self, key: RecordKey, raw: dict[str, Any]) -> None:
        """Note what is asked of all records at once."""
        status = raw.get("status") or {}
        if is_true(status, ConditionType.ADMITTED):
            self._refused.discard(key)
        else:
            self._refused.add(key)
        stalled = find(status, ConditionType.STALLED)
        lost = stalled is not None and stalled.reason == Reason.SUBSTRATE_LOST
        # What was lost before this process came is no sign of what happens now.
        if lost and self._lost.get(key) is False:
            self.breaker.lost()
        self._lost[key] = lost

    def _ask(self, key: Key, rank: Rank = Rank.CHANGED, raw: dict[str, Any] | None = None) -> None:
        if isinstance(key, RecordKey) and raw is None:
            raw = self._view.records().get((key.namespace, key.name))
        going = raw is not None and "deletionTimestamp" in raw["metadata"]
        news = None if raw is None else _news(raw)
        self.queue.add(key, news=news, rank=Rank.URGENT if going else rank)


def _news(raw: dict[str, Any]) -> Hashable:
    """Return what somebody else wrote of a record: its status, which is ours, is no news."""
    metadata = raw["metadata"]
    annotations = tuple(sorted((metadata.get("annotations") or {}).items()))
    going = "deletionTimestamp" in metadata
    return hash((metadata["uid"], metadata.get("generation"), going, annotations))
