"""The broker's parts in one process, over ports whose effects are seen.

What `reconciler.wiring` puts together, for one Project and without caches: a tick is handed
what it is to see.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import asyncpg

from function.contract.catalog.published import CloudCredentialSpec
from function.contract.record import Enrolment as EnrolmentKnobs
from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.adapters.postgres.aggregates.broker_repository import PostgresBrokerRepository
from reconciler.adapters.postgres.aggregates.hold_ledger import PostgresHoldLedger
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.registration.enrolment_store import PostgresEnrolmentStore
from reconciler.adapters.postgres.registration.node_deregistrar import PostgresNodeDeregistrar
from reconciler.adapters.postgres.registration.token_issuer import PostgresTokenIssuer
from reconciler.app.admission.service import Service, ServicePorts
from reconciler.app.controller.failure_reporter import FailureReporter
from reconciler.app.converge.reconciler import ReconcilerOptions, ReconcilerPorts
from reconciler.app.registration.registration import RegistrationPorts, RegistrationService
from reconciler.app.teardown.teardown import Teardown, TeardownPorts
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.catalog import ProjectView
from tests.fakes.budget import unlimited
from tests.fakes.catalog import InMemoryCatalog
from tests.fakes.management_cluster import ClusterRoles
from tests.faults.ground import Ground
from tests.faults.wire import Repeating, Wire, WiredClient, WiredPool
from tests.unit.reconciler import samples


class Catalogue(InMemoryCatalog):
    """The sample catalogue, for one Project; it may forget all but the Project."""

    def __init__(self, view: ProjectView, *, kind: str = samples.BLUEPRINT.xr.kind) -> None:
        super().__init__()
        self._xr = samples.BLUEPRINT.xr.model_copy(update={"kind": kind})
        self._borrower = view.name
        self.place(view)
        self.remember()

    def place(self, view: ProjectView) -> None:
        """Place the Project, or place it anew."""
        self.projects[view.id] = view

    def forget(self) -> None:
        """Lose blueprint, credential and cloud, as a commit in Git does."""
        for lost in (self.blueprints, self.credentials, self.clouds):
            lost.clear()

    def remember(self) -> None:
        """Have them again."""
        blueprint = samples.BLUEPRINT.model_copy(update={"xr": self._xr})
        self.blueprints[samples.BLUEPRINT_NAME] = blueprint
        self.clouds[samples.CLOUD_NAME] = samples.CLOUD
        self.lend()

    def lend(self, *, vault: str = "acme/demo", nobody: bool = False) -> None:
        """Lend the credential at this place of the vault to the Project, or to nobody."""
        spec = {
            "cloudRef": {"name": samples.CLOUD_NAME},
            "vault": {"mount": "kv", "path": vault},
            "projects": [] if nobody else [self._borrower],
            "secretStoreRef": {"name": "vault"},
        }
        credential = CloudCredentialSpec.model_validate(spec)
        self.credentials[samples.CREDENTIAL_NAME] = credential


class Process:
    """The broker's parts in one process; what it remembers goes with it."""

    def __init__(
        self, ground: Ground, catalogue: Catalogue, wire: Wire, clock: Clock | None = None
    ) -> None:
        clock = clock or SystemClock()
        pool = cast("asyncpg.Pool", WiredPool(ground.pool, wire))
        store = FencedStore(pool)
        client = cast("KubernetesClient", WiredClient(ground.client, wire))
        origin = SystemSecretSource(env="prod")

        def port(inner: object) -> Any:
            return Repeating(inner, wire)

        gateway = KubernetesGateway(client)
        self.repository = PostgresBrokerRepository(store, samples.CLUSTER)
        shared: dict[str, Any] = {
            "repository": port(self.repository),
            "catalog": catalogue,
            "cluster": ClusterRoles(**{name: port(part) for name, part in vars(gateway).items()}),
            "clock": clock,
        }
        mesh: dict[str, Any] = {
            "tokens": port(PostgresTokenIssuer(store, origin)),
            "nodes": port(PostgresNodeDeregistrar(store)),
            "holds": port(PostgresHoldLedger(store, samples.CLUSTER)),
        }
        service = Service(ServicePorts(**shared, ids=UUIDv7Source()), cluster_id=samples.CLUSTER)
        options = ReconcilerOptions(
            enrolment=EnrolmentKnobs(base_url="https://api.example.org"),
            token_ttl=timedelta(hours=1),
        )
        self.teardown = Teardown(TeardownPorts(**shared, **mesh), service)
        ports = ReconcilerPorts(**shared, **mesh, reachable=lambda: timedelta(days=365))
        self.tick = FailureReporter(ports, service, self.teardown, options=options)
        enrolment = RegistrationService(
            RegistrationPorts(
                store=PostgresEnrolmentStore(pool),
                secrets=origin,
                ids=UUIDv7Source(),
                clock=clock,
                project_budget=unlimited(),
            ),
            on_registered=lambda _: None,
        )
        # A machine that asks twice.
        self.enrolment = port(enrolment)
