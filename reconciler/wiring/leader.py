"""Runs what a process does while it leads: a controller over a store of its own.

Putting a term's controller together and taking it apart at once. Source: seed 000 "Operational
model": boot sweep, then a ticker; docs/decisions/0015.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg
from prometheus_client import CollectorRegistry

from reconciler.adapters.kubernetes.cluster import Cluster
from reconciler.adapters.postgres.aggregates.counts import PostgresCensus
from reconciler.adapters.postgres.connection.classify import passing, untranslated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.connection.lease import PostgresLeases
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from reconciler.app.controller.controller import WATCHFUL, Controller
from reconciler.app.controller.leader_election import LeaderElection, LeadershipTerm
from reconciler.app.controller.liveness import Liveness
from reconciler.app.guard import cluster_identity
from reconciler.app.housekeeping.orphan_sweep import OrphanSweep
from reconciler.app.registration.endpoint_uptime import EndpointUptime
from reconciler.domain.aggregate import ids
from reconciler.domain.guard.lease import Pace
from reconciler.domain.teardown.orphans import OrphanFinding
from reconciler.ports.controller import ControllerState
from reconciler.settings import Settings, SettingsError
from reconciler.wiring.controller import make_circuit_breaker, make_controller
from reconciler.wiring.orphan_sweep import make_orphan_sweep
from reconciler.wiring.relay import EVENTS

SWEEP_TIMEOUT_S: Final = 30.0
"""How long nodes may wait for the boot sweep, a steady record taking some 10 ms of it; what is
left goes on beside them."""

POOL_MAX: Final = 16
"""Connections of the one controller, beside those of the listeners of every replica."""

END_S: Final = 2.0
"""Longest wait for the orphan sweep to notice that its term is over; its connections are gone."""

_NOT_OURS: Final = (
    "PLEXSPHERE_MANAGEMENT_CLUSTER: records here live on management cluster {home!r}; "
    "the name cannot change"
)

_log = logging.getLogger("reconciler.wiring")


class LeaderRouter:
    """Hands what every replica hears on to the controller, while there is one.

    Attributes:
        metrics: What this process counts, whether it leads or not.
        liveness: What was last heard of the lease and of the controller.
    """

    def __init__(self, metrics: CollectorRegistry, liveness: Liveness) -> None:
        self.metrics = metrics
        self.liveness = liveness
        self.controller: Controller | None = None
        self.orphan_sweep: OrphanSweep | None = None
        self.listening = False
        """Whether nodes reach us already: then nothing waits for a boot sweep to end."""
        self.steered = asyncio.Event()
        """Set once a controller of ours has finished its boot sweep."""

    def changed(self, kind: str, key: tuple[str, str]) -> None:
        """Hear of a change in a cache."""
        if self.controller is not None:
            self.controller.changed(kind, key)

    def registered(self, detail: str | None) -> None:
        """Note that a node registered for an aggregate, with any replica.

        Args:
            detail: Its id; None when some were missed, which the sweep finds.
        """
        if self.controller is not None and detail:
            self.controller.registered(ids.ProvisionedResourceID(UUID(detail)))

    @property
    def state(self) -> ControllerState | None:
        """What the controller says of itself; None while none is ours."""
        return None if self.controller is None else self.controller.state

    def orphans(self) -> Mapping[OrphanFinding, int] | None:
        """How many of each finding stand; None while nobody here looks for any."""
        return None if self.orphan_sweep is None else self.orphan_sweep.standing

    @property
    def fault(self) -> str | None:
        """Why the cluster is not driven as it should, as far as this process can tell, or None.

        What a leader's looks died of, or that it does not finish any; that nobody leads. Of a
        leader elsewhere only that there is one.
        """
        died = None if self.controller is None else self.controller.sweep_fault
        return died or self.liveness.fault


class Leader:
    """Leads one term after the other."""

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        reachability: EndpointUptime,
        router: LeaderRouter,
        notify: NotifyChannel,
    ) -> None:
        self._notify = notify
        self._settings = settings
        self._cluster = cluster
        self._reachability = reachability
        self._router = router
        self._breaker = make_circuit_breaker(cluster)

    async def watch(self) -> None:
        """Judge what is seen of the cluster while somebody else leads, until cancelled."""
        await self._breaker.watch()

    async def lead(self, term: LeadershipTerm) -> None:
        """Sweep, work and sweep again until cancelled.

        Raises:
            StoreUnavailableError: Postgres cannot be reached, or refuses what a term begins with.
            SettingsError: The records here are another management cluster's; nothing was written.
        """
        with passing("open the driver's connections"):
            pool = await open_pool(self._settings.dsn.get_secret_value(), size_max=POOL_MAX)
        # A connection that is cut off answers no rollback: nothing is waited for.
        term.at_end(pool.terminate)
        try:
            with self._breaker.leading():
                await self._drive(pool, term)
        finally:
            self._router.controller = self._router.orphan_sweep = None
            pool.terminate()

    async def _drive(self, pool: asyncpg.Pool, term: LeadershipTerm) -> None:
        store = FencedStore(pool, term.lease, committed=lambda: self._notify.ring(EVENTS))
        with untranslated("begin a term"):
            await self._assert_ours(store)
            controller = await make_controller(
                self._settings,
                store,
                self._cluster,
                self._reachability,
                self._breaker,
                term.check,
            )
            controller.ticker.on_end = self._router.liveness.finished
            self._router.controller = controller
            await self._boot(controller)
        self._router.liveness.begun()
        self._router.steered.set()
        slug = self._settings.management_cluster
        orphans = make_orphan_sweep(slug, store, self._cluster, term.check)
        self._router.orphan_sweep = orphans
        looking = asyncio.create_task(orphans.run(self._settings.orphan_interval))
        try:
            await controller.run(
                broker_interval=self._settings.broker_interval,
                fleet_interval=self._settings.fleet_interval,
            )
        finally:
            pool.terminate()
            await _stopped(looking)

    async def _assert_ours(self, store: FencedStore) -> None:
        slug = self._settings.management_cluster
        census = PostgresCensus(store, ids.management_cluster_id(slug))
        home = await cluster_identity.elsewhere(census, self._cluster.records.uids())
        if home is not None:
            raise SettingsError((_NOT_OURS.format(home=home),))

    async def _boot(self, controller: Controller) -> None:
        async with asyncio.timeout(SWEEP_TIMEOUT_S):
            asked = await controller.sweep_projects() + await controller.sweep_records()
        within_s = 0.0 if self._router.listening else SWEEP_TIMEOUT_S
        left = await controller.queue.settle(within_s=within_s)
        _log.info("boot_sweep_done keys=%d left=%d", asked, left)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=END_S)
    if not done:
        _log.warning("orphan_sweep_still_runs")


def leases(settings: Settings) -> PostgresLeases:
    """Make the store of leases; whoever calls closes it."""
    pace = Pace(ttl=settings.lease_ttl)
    answer_within = max(pace.renewed_every, timedelta(seconds=1))
    return PostgresLeases(settings.dsn.get_secret_value(), answer_within=answer_within)


def make_liveness(settings: Settings) -> Liveness:
    """Make what hears whether the cluster is driven.

    A leader that is gone is succeeded within the time of its lease; only where that is not
    possible does the store tell of nobody for so long.
    """
    looks = {
        "sweep_records": settings.broker_interval,
        "sweep_projects": settings.fleet_interval,
        "write": WATCHFUL,
    }
    return Liveness(_clock, unled=settings.lease_ttl, looks=looks)


def leader_election(
    settings: Settings, store: PostgresLeases, liveness: Liveness
) -> LeaderElection:
    """Make this process a candidate for its management cluster.

    In a container that starts again, name and number are those of the process before it: the
    last part is nobody else's.
    """
    return LeaderElection(
        store,
        key=ids.management_cluster_id(settings.management_cluster),
        holder=f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(8)}",
        pace=Pace(ttl=settings.lease_ttl),
        clock=_clock,
        heard=liveness.led,
    )


def _clock() -> float:
    """Seconds that go on while the process is stopped, and where Linux tells, the machine."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
