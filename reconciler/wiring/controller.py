"""Builds the controller of one management cluster from its adapters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.kubernetes.cluster import Cluster
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.kubernetes.namespaces.projects import KubernetesProjectGateway
from reconciler.adapters.kubernetes.objects.writes import MayWrite
from reconciler.adapters.postgres.aggregates.broker_repository import PostgresBrokerRepository
from reconciler.adapters.postgres.aggregates.hold_ledger import PostgresHoldLedger
from reconciler.adapters.postgres.aggregates.tenancy_repository import PostgresTenancyRepository
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.registration.node_deregistrar import PostgresNodeDeregistrar
from reconciler.adapters.postgres.registration.token_issuer import PostgresTokenIssuer
from reconciler.app.admission.service import Service, ServicePorts
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.controller.failure_reporter import FailureReporter
from reconciler.app.converge.reconciler import ReconcilerOptions, ReconcilerPorts
from reconciler.app.guard.circuit_breaker import CircuitBreaker
from reconciler.app.projects.project_reconciler import ProjectReconciler
from reconciler.app.registration.endpoint_uptime import EndpointUptime
from reconciler.app.teardown.teardown import Teardown, TeardownPorts
from reconciler.ports.cluster.catalog import Catalog
from reconciler.settings import Settings


def make_circuit_breaker(cluster: Cluster) -> CircuitBreaker:
    """Make what judges a cluster, and have it hear what is seen there, whoever leads."""
    breaker = CircuitBreaker(time.monotonic, silent_s=cluster.silent_s)
    cluster.on_doubt = breaker.doubted
    cluster.client.on_answer = breaker.answered
    return breaker


async def make_controller(
    settings: Settings,
    store: FencedStore,
    cluster: Cluster,
    reachability: EndpointUptime,
    breaker: CircuitBreaker,
    may_write: MayWrite,
) -> Controller:
    """Make the controller of the management cluster that the settings name; it does not run yet.

    Args:
        settings: What is driven, and how.
        store: Its rows, behind the fence of the term.
        cluster: Its caches.
        reachability: For how long nodes could reach us.
        breaker: Open while what is observed of the cluster is not believed.
        may_write: Raises once the term is over; asked before each write to the cluster.
    """
    secrets = SystemSecretSource(env=settings.token_env)
    tenancy = PostgresTenancyRepository(store, secrets)
    slug = settings.management_cluster
    cluster_id = await tenancy.ensure_cluster(slug, slug)
    adapters = _Adapters(
        repository=PostgresBrokerRepository(store, cluster_id),
        cluster=KubernetesGateway(cluster.client, may_write),
        tokens=PostgresTokenIssuer(store, secrets),
        nodes=PostgresNodeDeregistrar(store),
        holds=PostgresHoldLedger(store, cluster_id),
        clock=SystemClock(),
    )
    service = Service(_service_ports(adapters, cluster.catalog), cluster_id=cluster_id)
    teardown = Teardown(_teardown_ports(adapters, cluster.catalog, settings), service)
    ports = _reconciler_ports(adapters, cluster.catalog, reachability, breaker)
    return Controller(
        view=_view(cluster, breaker),
        repository=adapters.repository,
        reconciler=FailureReporter(ports, service, teardown, options=_options(settings)),
        teardown=teardown,
        project_reconciler=_project_reconciler(cluster, may_write, tenancy, service, slug=slug),
        cluster_id=cluster_id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapters:
    """The adapters that the services of one controller share."""

    repository: PostgresBrokerRepository
    cluster: KubernetesGateway
    tokens: PostgresTokenIssuer
    nodes: PostgresNodeDeregistrar
    holds: PostgresHoldLedger
    clock: SystemClock


def _service_ports(adapters: _Adapters, catalog: Catalog) -> ServicePorts:
    return ServicePorts(
        repository=adapters.repository,
        catalog=catalog,
        cluster=adapters.cluster,
        clock=adapters.clock,
        ids=UUIDv7Source(),
    )


def _teardown_ports(adapters: _Adapters, catalog: Catalog, settings: Settings) -> TeardownPorts:
    return TeardownPorts(
        repository=adapters.repository,
        catalog=catalog,
        cluster=adapters.cluster,
        tokens=adapters.tokens,
        nodes=adapters.nodes,
        holds=adapters.holds,
        clock=adapters.clock,
        deregistration_timeout=settings.deregistration_timeout,
    )


def _reconciler_ports(
    adapters: _Adapters, catalog: Catalog, reachability: EndpointUptime, breaker: CircuitBreaker
) -> ReconcilerPorts:
    return ReconcilerPorts(
        repository=adapters.repository,
        catalog=catalog,
        cluster=adapters.cluster,
        tokens=adapters.tokens,
        nodes=adapters.nodes,
        holds=adapters.holds,
        clock=adapters.clock,
        reachable=_reachable(reachability, breaker),
        steady=breaker.steady,
    )


def _options(settings: Settings) -> ReconcilerOptions:
    return ReconcilerOptions(
        enrolment=settings.enrolment,
        token_ttl=settings.token_ttl,
        registration_timeout=settings.registration_timeout,
        provisioning_timeout=settings.provisioning_timeout,
    )


def _view(cluster: Cluster, breaker: CircuitBreaker) -> ClusterView:
    return ClusterView(
        records=cluster.records.items,
        projects=cluster.projects.items,
        version_of=cluster.records.version,
        record_exists=cluster.record_exists,
        list_anew=cluster.records.list_anew,
        breaker=breaker,
    )


def _project_reconciler(
    cluster: Cluster,
    may_write: MayWrite,
    tenancy: PostgresTenancyRepository,
    service: Service,
    *,
    slug: str,
) -> ProjectReconciler:
    gateway = KubernetesProjectGateway(
        cluster.client, domains=cluster.caches["domains"], may_write=may_write
    )
    settle = service.namespaces.settle
    return ProjectReconciler(gateway, tenancy, SystemClock(), cluster=slug, settle=settle)


def _reachable(reachability: EndpointUptime, breaker: CircuitBreaker) -> Callable[[], timedelta]:
    """Return for how long nodes could reach us: a machine is not judged by what is not believed."""

    def reachable() -> timedelta:
        return timedelta() if breaker.frozen else reachability.lasts()

    return reachable
