"""The only place that names concrete adapters.

Opens what `broker serve` holds open, in order, and closes it in reverse. `leader` is what a
leading process runs, `controller` builds it, `listeners` binds the listeners.

Source: seed 000 "Operational model": boot sweep
before the listeners bind, then a ticker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import asyncpg

from reconciler.adapters.kubernetes.cluster import Cluster, open_client
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.adapters.kubernetes.transport.kubeconfig import KubeconfigError
from reconciler.adapters.metrics.controller import ControllerCollector, registry
from reconciler.adapters.metrics.orphans import OrphanCollector
from reconciler.adapters.postgres.aggregates.retention import PostgresRetention
from reconciler.adapters.postgres.connection.migrate import check, migrate
from reconciler.adapters.postgres.connection.pool import open_pool, ping, reaching
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from reconciler.app.housekeeping.retention import Retention
from reconciler.app.registration.endpoint_uptime import EndpointUptime
from reconciler.settings import Settings, SettingsError
from reconciler.wiring.leader import Leader, LeaderRouter, leader_election, leases, make_liveness
from reconciler.wiring.listeners import StartError, listen
from reconciler.wiring.relay import REGISTERED, relaying

SYNC_TIMEOUT_S: Final = 60.0
"""How long the first lists may take; ten thousand records take a few seconds."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[asyncio.Task[None]]:
    """Open everything; inside, the listeners are bound and somebody leads.

    Somebody is another process, or this one once its boot sweep is over.

    Yields:
        The running work; it ends only by failing or by being cancelled.

    Raises:
        SettingsError: KUBECONFIG leads to no cluster, or to another one's records.
        StoreError: Postgres cannot be reached, or does not let us in.
        MigrationError: Its schema is not this version's and cannot, or must not, be made so.
        StartError: The API server cannot be reached, or a listener cannot be bound.
    """
    async with AsyncExitStack() as stack:
        # First what needs nobody else, so that a wrong setting is told before anything happens.
        client = await _open_client(settings)
        stack.push_async_callback(client.close)
        pool = await _open_store(settings)
        stack.push_async_callback(pool.close)
        metrics = registry()
        router = LeaderRouter(metrics, make_liveness(settings))
        notify = NotifyChannel(settings.dsn.get_secret_value())
        notify.listen(REGISTERED, router.registered)
        relay = await stack.enter_async_context(relaying(settings, notify, metrics))
        notifying = _beside(stack, _together(notify.run(), relay.run()))
        cluster = Cluster(client, on_change=router.changed)
        metrics.register(ControllerCollector(lambda: router.state, cluster.caches))
        metrics.register(OrphanCollector(router.orphans))
        reachability = EndpointUptime(time.monotonic)
        caches = _beside(stack, cluster.run())
        await _synced(cluster, caches)
        leader = Leader(settings, cluster, reachability, router, notify)
        work = await _candidate(stack, settings, leader, router)
        await listen(stack, settings, pool, router, cluster, notify)
        router.listening = True
        seeing = _together(reachability.prove(lambda: ping(pool)), leader.watch())
        proofs = _beside(stack, seeing)
        retention = _beside(stack, Retention(PostgresRetention(pool), settings.keep).run())
        yield _beside(stack, _first_of(caches, work, proofs, retention, notifying))


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Begin work beside everything else; the stack ends it."""
    task = asyncio.create_task(work)
    stack.push_async_callback(_ended, task)
    return task


async def _candidate(
    stack: AsyncExitStack, settings: Settings, leader: Leader, router: LeaderRouter
) -> asyncio.Task[None]:
    """Stand for the lease; return once somebody leads."""
    candidacies = leases(settings)
    stack.callback(candidacies.close)
    candidate = leader_election(settings, candidacies, router.liveness)
    work = _beside(stack, candidate.run(leader.lead))
    await _first_done(work, router.steered.wait(), candidate.standing_by.wait())
    return work


async def _open_client(settings: Settings) -> KubernetesClient:
    try:
        return await open_client(settings.kubeconfig)
    except KubeconfigError as error:
        raise SettingsError((f"KUBECONFIG: {error}",)) from error


async def _open_store(settings: Settings) -> asyncpg.Pool:
    dsn = settings.dsn.get_secret_value()
    with reaching():
        await (migrate(dsn) if settings.migrate == "auto" else check(dsn))
        return await open_pool(dsn)


async def _synced(cluster: Cluster, caches: asyncio.Task[None]) -> None:
    """Wait for the first lists, or for whatever ended the caches."""
    lists = asyncio.create_task(cluster.wait_synced())
    try:
        done, _ = await asyncio.wait(
            {lists, caches}, timeout=SYNC_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        lists.cancel()
    if caches in done:
        caches.result()
    if lists not in done:
        message = (
            f"cannot list the broker's kinds within {SYNC_TIMEOUT_S:g} s: check the API server"
        )
        raise StartError(message)


async def _first_done(work: asyncio.Task[None], *events: Coroutine[Any, Any, object]) -> None:
    """Wait for one of the events, or for what ended the work before them."""
    waiting = {asyncio.ensure_future(event) for event in events}
    try:
        await asyncio.wait({work, *waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
    if work.done():
        work.result()


async def _first_of(*tasks: asyncio.Task[None]) -> None:
    """Run until one of the tasks ends, which none should; its failure is raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _together(*works: Coroutine[Any, Any, None]) -> None:
    """Run works that never end, until one fails or all are cancelled."""
    async with asyncio.TaskGroup() as group:
        for each in works:
            group.create_task(each)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
