"""How the driver is put together from its adapters.

The driver, its ticks and their ports.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

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
from reconciler.domain.aggregate import ids
from reconciler.settings import Settings


def make_circuit_breaker(cluster: Cluster) -> CircuitBreaker:
    """Make what judges a cluster, and have it hear what is seen there, whoever leads."""
    steadiness = CircuitBreaker(time.monotonic, silent_s=cluster.silent_s)
    cluster.on_doubt = steadiness.doubted
    cluster.client.on_answer = steadiness.answered
    return steadiness


async def make_controller(
    settings: Settings,
    store: FencedStore,
    cluster: Cluster,
    reachability: EndpointUptime,
    steadiness: CircuitBreaker,
    may_write: MayWrite,
) -> Controller:
    """Make the driver of the management cluster that the settings name; it is not run yet.

    Args:
        settings: What is driven, and how.
        store: Its rows, behind the fence of the term.
        cluster: Its caches.
        reachability: For how long nodes could reach us.
        steadiness: Whether what is seen of the cluster is believed.
        may_write: Raises once the term is over; asked before each write to the cluster.
    """
    secrets = SystemSecretSource(env=settings.token_env)
    tenancy = PostgresTenancyRepository(store, secrets)
    slug = settings.management_cluster
    cluster_id = await tenancy.ensure_cluster(slug, slug)
    shared = _shared(store, cluster, may_write, cluster_id)
    mesh = _mesh(store, secrets, cluster_id)
    service = Service(ServicePorts(**shared, ids=UUIDv7Source()), cluster_id=cluster_id)
    teardown = Teardown(
        TeardownPorts(**shared, **mesh, deregistration_timeout=settings.deregistration_timeout),
        service,
    )
    reachable = _reachable(reachability, steadiness)
    ports = ReconcilerPorts(**shared, **mesh, reachable=reachable, steady=steadiness.steady)
    return Controller(
        view=_view(cluster, steadiness),
        repository=shared["repository"],
        tick=FailureReporter(ports, service, teardown, knobs=_knobs(settings)),
        teardown=teardown,
        project_tick=_project_tick(cluster, may_write, tenancy, service, slug=slug),
        cluster_id=cluster_id,
    )


def _shared(
    store: FencedStore, cluster: Cluster, may_write: MayWrite, cluster_id: ids.ManagementClusterID
) -> dict[str, Any]:
    """Return the ports that everything takes, by their fields' names."""
    return {
        "repository": PostgresBrokerRepository(store, cluster_id),
        "catalog": cluster.catalog,
        "cluster": KubernetesGateway(cluster.client, may_write),
        "clock": SystemClock(),
    }


def _mesh(
    store: FencedStore, secrets: SystemSecretSource, cluster_id: ids.ManagementClusterID
) -> dict[str, Any]:
    """Return the ports of tokens, nodes and holds, by their fields' names."""
    return {
        "tokens": PostgresTokenIssuer(store, secrets),
        "nodes": PostgresNodeDeregistrar(store),
        "holds": PostgresHoldLedger(store, cluster_id),
    }


def _knobs(settings: Settings) -> ReconcilerOptions:
    return ReconcilerOptions(
        enrolment=settings.enrolment,
        token_ttl=settings.token_ttl,
        registration_timeout=settings.registration_timeout,
        provisioning_timeout=settings.provisioning_timeout,
    )


def _view(cluster: Cluster, steadiness: CircuitBreaker) -> ClusterView:
    return ClusterView(
        records=cluster.records.items,
        projects=cluster.projects.items,
        version_of=cluster.records.version,
        record_exists=cluster.record_exists,
        list_anew=cluster.records.list_anew,
        steadiness=steadiness,
    )


def _project_tick(
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


def _reachable(reachability: EndpointUptime, steadiness: CircuitBreaker) -> Callable[[], timedelta]:
    """Return for how long nodes could reach us: a machine is not judged by what is not believed."""

    def reachable() -> timedelta:
        return timedelta() if steadiness.frozen else reachability.lasts()

    return reachable
