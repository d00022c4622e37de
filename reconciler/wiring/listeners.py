"""Builds and binds the two listeners.

The applications of nodes and operators, their ports, the readiness probes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import asyncpg
from prometheus_client import generate_latest

from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.http.listener import Address, ListenerError, TLSFiles, listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.http.operators.operator_api import OperatorAPI
from reconciler.adapters.http.operators.operator_app import NotReadyError, Probe, operator_app
from reconciler.adapters.http.operators.operator_auth import Gate
from reconciler.adapters.http.rate_limit import TokenBuckets
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.kubernetes.access.reviews import KubernetesReviewer
from reconciler.adapters.kubernetes.cluster import Cluster
from reconciler.adapters.postgres.connection.pool import ping
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from reconciler.adapters.postgres.registration.enrolment_store import PostgresEnrolmentStore
from reconciler.adapters.postgres.registration.operator_store import PostgresOperatorStore
from reconciler.app.registration.registration import RegistrationPorts, RegistrationService
from reconciler.settings import Settings
from reconciler.wiring.leader import LeaderRouter
from reconciler.wiring.relay import REGISTERED

BEARERS_AT_ONCE: Final = 100
"""Requests with a bearer of one address that are being looked at: ten thousand nodes behind one
address, each every half minute for some milliseconds, are a few."""

_log = logging.getLogger("reconciler.wiring")


class StartError(Exception):
    """`broker serve` cannot start; the message names the missing precondition."""


async def listen(
    stack: AsyncExitStack,
    settings: Settings,
    pool: asyncpg.Pool,
    router: LeaderRouter,
    cluster: Cluster,
    notify: NotifyChannel,
) -> None:
    """Bind both listeners; the stack closes them.

    Raises:
        StartError: A listener cannot be bound.
    """
    ports = RegistrationPorts(
        store=PostgresEnrolmentStore(pool),
        secrets=SystemSecretSource(env=settings.token_env),
        ids=UUIDv7Source(),
        clock=SystemClock(),
        project_budget=_budget(settings.register_rate.per_project),
    )
    enrolment = RegistrationService(
        ports, on_registered=lambda each: notify.ring(REGISTERED, str(each))
    )
    per_address = settings.register_rate.per_address
    nodes = node_app(
        enrolment,
        address_budget=_budget(per_address),
        bearer_budget=_budget(per_address, at_once=BEARERS_AT_ONCE),
    )
    gate = Gate(KubernetesReviewer(cluster.client, audience=settings.operator_audience))
    api = OperatorAPI(gate, PostgresOperatorStore(pool))
    operators = operator_app(
        _probes(pool, router, cluster), api, metrics=lambda: generate_latest(router.metrics)
    )
    certificate, key = settings.tls_cert_file, settings.tls_key_file
    files = TLSFiles(certificate=certificate, key=key) if certificate and key else None
    for name, app, wanted in (
        ("node", nodes, settings.node_listen),
        ("operator", operators, settings.operator_listen),
    ):
        address = Address(host=wanted.host, port=wanted.port)
        try:
            url = await stack.enter_async_context(listening(app, address, tls=files))
        except ListenerError as error:
            message = f"PLEXSPHERE_{name.upper()}_LISTEN: {error}"
            raise StartError(message) from error
        _log.info("listening listener=%s url=%s", name, url)


def _budget(per_second: float, *, at_once: int = 1) -> TokenBuckets:
    return TokenBuckets(per_second=per_second, monotonic=time.monotonic, at_once=at_once)


def _probes(pool: asyncpg.Pool, router: LeaderRouter, cluster: Cluster) -> Mapping[str, Probe]:
    async def postgres() -> None:
        await ping(pool)

    async def kubernetes() -> None:
        await cluster.client.request("GET", "/version")

    async def reconcile() -> None:
        if router.fault is not None:
            raise NotReadyError(router.fault)

    return {
        "postgres": postgres,
        "management-cluster": kubernetes,
        "provisioning-broker-reconcile": reconcile,
    }
