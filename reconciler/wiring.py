"""The only place that names concrete adapters.

Belongs here: opening what `broker serve` holds open, in order, and closing it in reverse.
Not here: decisions, flags, exit codes. `reconciler.main` imports it; tests may.
Source: seed 000 "Operational model": boot sweep before the listeners bind, then a ticker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import asyncpg

from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.http.listener import Address, ListenerError, TLSFiles, listening
from reconciler.adapters.http.node_app import node_app
from reconciler.adapters.http.operator_api import OperatorAPI
from reconciler.adapters.http.operator_app import Probe, operator_app
from reconciler.adapters.http.operator_auth import Gate
from reconciler.adapters.http.rate_limit import TokenBuckets
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.kubernetes.client import KubernetesClient
from reconciler.adapters.kubernetes.cluster import Cluster, open_client
from reconciler.adapters.kubernetes.kubeconfig import KubeconfigError
from reconciler.adapters.kubernetes.reviews import KubernetesReviewer
from reconciler.adapters.postgres.broker_repository import PostgresBrokerRepository
from reconciler.adapters.postgres.enrolment_store import PostgresEnrolmentStore
from reconciler.adapters.postgres.hold_ledger import PostgresHoldLedger
from reconciler.adapters.postgres.migrate import migrate
from reconciler.adapters.postgres.node_deregistrar import PostgresNodeDeregistrar
from reconciler.adapters.postgres.operator_store import PostgresOperatorStore
from reconciler.adapters.postgres.pool import open_pool, ping, reaching
from reconciler.adapters.postgres.tenancy_repository import PostgresTenancyRepository
from reconciler.adapters.postgres.token_issuer import PostgresTokenIssuer
from reconciler.app.broker_service import Service, ServicePorts
from reconciler.app.broker_tick import Knobs, Tick, TickPorts
from reconciler.app.driver import Driver, LocalView
from reconciler.app.enrolment import Enrolment, EnrolmentPorts
from reconciler.app.project_tick import ProjectTick
from reconciler.app.reachability import Reachability
from reconciler.app.teardown import Teardown, TeardownPorts
from reconciler.settings import Settings, SettingsError

SYNC_TIMEOUT_S: Final = 60.0
"""How long the first lists may take; ten thousand records take a few seconds."""

SWEEP_TIMEOUT_S: Final = 30.0
"""How long nodes may wait for the boot sweep, a steady record taking some 10 ms of it; what is
left goes on beside them."""

_log = logging.getLogger(__name__)


class StartError(Exception):
    """What `broker serve` needs is not there; the message names it."""


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[asyncio.Task[None]]:
    """Open everything; the boot sweep is over and the listeners are bound inside.

    Yields:
        The running work; it ends only by failing or by being cancelled.

    Raises:
        SettingsError: KUBECONFIG leads to no cluster.
        StoreError: Postgres cannot be reached, or does not let us in.
        MigrationError: Its schema cannot be brought up to this version.
        StartError: The API server cannot be reached, or a listener cannot be bound.
        TimeoutError: What there is to sweep cannot be listed in time.
    """
    async with AsyncExitStack() as stack:
        # First what needs nobody else, so that a wrong setting is told before anything happens.
        client = await _open_client(settings)
        stack.push_async_callback(client.close)
        pool = await _open_store(settings.dsn.get_secret_value())
        stack.push_async_callback(pool.close)
        changes = _Changes()
        cluster = Cluster(client, on_change=changes)
        reachability = Reachability(time.monotonic)
        driver = await _driver(settings, pool, cluster, reachability)
        changes.connect(driver)
        caches = asyncio.create_task(cluster.run())
        stack.push_async_callback(_ended, caches)
        await _synced(cluster, caches)
        async with asyncio.timeout(SWEEP_TIMEOUT_S):
            asked = await driver.sweep_projects() + await driver.sweep_records()
        left = await driver.queue.settle(within_s=SWEEP_TIMEOUT_S)
        _log.info("boot_sweep_done keys=%d left=%d", asked, left)
        await _listen(stack, settings, pool, driver, cluster)
        work = asyncio.create_task(
            driver.run(
                broker_interval=settings.broker_interval, fleet_interval=settings.fleet_interval
            )
        )
        stack.push_async_callback(_ended, work)
        proofs = asyncio.create_task(reachability.prove(lambda: ping(pool)))
        stack.push_async_callback(_ended, proofs)
        everything = asyncio.create_task(_first_of(caches, work, proofs))
        stack.push_async_callback(_ended, everything)
        yield everything


async def _open_client(settings: Settings) -> KubernetesClient:
    try:
        return await open_client(settings.kubeconfig)
    except KubeconfigError as error:
        raise SettingsError((f"KUBECONFIG: {error}",)) from error


async def _open_store(dsn: str) -> asyncpg.Pool:
    with reaching():
        await migrate(dsn)
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
        message = f"cannot list our kinds within {SYNC_TIMEOUT_S:g} s: is the API server there?"
        raise StartError(message)


async def _first_of(*tasks: asyncio.Task[None]) -> None:
    """Run until one of the tasks ends, which none should; its failure is raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


class _Changes:
    """Hands changes on to the driver, which needs the cluster that reports them."""

    def __init__(self) -> None:
        self._driver: Driver | None = None

    def connect(self, driver: Driver) -> None:
        self._driver = driver

    def __call__(self, kind: str, key: tuple[str, str]) -> None:
        if self._driver is not None:
            self._driver.changed(kind, key)


async def _driver(
    settings: Settings, pool: asyncpg.Pool, cluster: Cluster, reachability: Reachability
) -> Driver:
    clock = SystemClock()
    secrets = SystemSecretSource(env=settings.token_env)
    tenancy = PostgresTenancyRepository(pool, secrets)
    slug = settings.management_cluster
    cluster_id = await tenancy.ensure_cluster(slug, slug)
    shared: dict[str, Any] = {
        "repository": PostgresBrokerRepository(pool),
        "catalog": cluster.catalog,
        "cluster": cluster.gateway,
        "clock": clock,
    }
    mesh: dict[str, Any] = {
        "tokens": PostgresTokenIssuer(pool, secrets),
        "nodes": PostgresNodeDeregistrar(pool),
        "holds": PostgresHoldLedger(pool, cluster_id),
    }
    service = Service(ServicePorts(**shared, ids=UUIDv7Source()), cluster_id=cluster_id)
    teardown = Teardown(TeardownPorts(**shared, **mesh), service)
    knobs = Knobs(
        enrolment=settings.enrolment,
        token_ttl=settings.token_ttl,
        registration_timeout=settings.registration_timeout,
    )
    ports = TickPorts(**shared, **mesh, reachable=reachability.lasts)
    return Driver(
        view=LocalView(records=cluster.records.items, projects=cluster.projects.items),
        repository=shared["repository"],
        tick=Tick(ports, service, teardown, knobs=knobs),
        teardown=teardown,
        project_tick=ProjectTick(
            cluster.project_gateway,
            tenancy,
            clock,
            cluster=slug,
            settle=service.settle_namespace,
        ),
        cluster_id=cluster_id,
    )


async def _listen(
    stack: AsyncExitStack,
    settings: Settings,
    pool: asyncpg.Pool,
    driver: Driver,
    cluster: Cluster,
) -> None:
    ports = EnrolmentPorts(
        store=PostgresEnrolmentStore(pool),
        secrets=SystemSecretSource(env=settings.token_env),
        ids=UUIDv7Source(),
        clock=SystemClock(),
        project_budget=_budget(settings.register_rate.per_project),
    )
    enrolment = Enrolment(ports, on_registered=driver.registered)
    nodes = node_app(enrolment, address_budget=_budget(settings.register_rate.per_address))
    gate = Gate(KubernetesReviewer(cluster.client, audience=settings.operator_audience))
    api = OperatorAPI(gate, PostgresOperatorStore(pool))
    operators = operator_app(_probes(pool, driver, cluster), api)
    certificate, key = settings.tls_cert_file, settings.tls_key_file
    files = TLSFiles(certificate=certificate, key=key) if certificate and key else None
    for name, app, listen in (
        ("node", nodes, settings.node_listen),
        ("operator", operators, settings.operator_listen),
    ):
        address = Address(host=listen.host, port=listen.port)
        try:
            url = await stack.enter_async_context(listening(app, address, tls=files))
        except ListenerError as error:
            message = f"PLEXSPHERE_{name.upper()}_LISTEN: {error}"
            raise StartError(message) from error
        _log.info("listening listener=%s url=%s", name, url)


def _budget(per_second: float) -> TokenBuckets:
    return TokenBuckets(per_second=per_second, monotonic=time.monotonic)


def _probes(pool: asyncpg.Pool, driver: Driver, cluster: Cluster) -> Mapping[str, Probe]:
    async def postgres() -> None:
        await ping(pool)

    async def kubernetes() -> None:
        await cluster.client.request("GET", "/version")

    async def reconcile() -> None:
        if driver.sweep_fault is not None:
            raise RuntimeError(driver.sweep_fault)

    return {
        "postgres": postgres,
        "management-cluster": kubernetes,
        "provisioning-broker-reconcile": reconcile,
    }


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
