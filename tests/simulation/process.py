"""One process of the broker: the real driver over ports that may fail, lag, or outlive it.

A process's beginning, its caches, its death; what its calls meet on their way. A dead
process has no effect any more, whatever still runs of it; a stopped one has none until it
goes on, and by then somebody else leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Protocol

from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.record import Enrolment as EnrolmentKnobs
from reconciler.app.admission.service import Service, ServicePorts
from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.controller.controller import Controller
from reconciler.app.converge.reconciler import Reconciler, ReconcilerOptions, ReconcilerPorts
from reconciler.app.guard.circuit_breaker import CircuitBreaker
from reconciler.app.projects.project_reconciler import ProjectReconciler
from reconciler.app.teardown.teardown import Teardown, TeardownPorts
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.ports.cluster.catalog import ProjectView
from reconciler.ports.registration import StoreUnavailableError
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.fakes.hold_ledger import InMemoryHoldLedger
from tests.fakes.identity import (
    InMemoryNodeDeregistrar,
    InMemoryTenancyRepository,
    InMemoryTokenIssuer,
)
from tests.fakes.management_cluster import every_role
from tests.simulation.cluster import Raw
from tests.simulation.ground import Ground, LoopClock
from tests.simulation.schedule import Kind
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import EFFECTS, SampleCatalog

SWEEP_S: Final = 60.0
LEASE_S: Final = 8.0
"""After which a successor leads (plan, D2)."""

_ENROLMENT: Final = EnrolmentKnobs(
    base_url="https://api.example.org",
    plexd_download_url="https://downloads.example.org/plexd-linux-{arch}",
    plexd_image="registry.example.org/plexd:v0.8.0",
)

_CLUSTER_WRITES: Final = frozenset(
    {
        "write_status", "remove_finalizer", "release", "delete_object", "create_token_secret",
        "delete_token_secret", "hold_namespace", "hold_credentials", "ensure_provider_config",
        "delete_provider_config",
    }
)  # fmt: skip


class KilledError(asyncio.CancelledError):
    """The process is no more."""


class Lead(Protocol):
    """What a process asks of the world."""

    def struck(self, process: Process, effect: str) -> Strike | None:
        """Tell what happens to the effect that is about to happen."""

    def happened(self, process: Process, effect: str, result: Any) -> None:
        """Hear of an effect."""

    def ended(self, process: Process) -> None:
        """Hear that a process is dead."""


Strike = tuple[Kind, float]
"""What strikes an effect, and for how long."""


class Process:
    """One incarnation."""

    def __init__(self, ground: Ground, lead: Lead, *, number: int) -> None:
        self.ground = ground
        self.number = number
        self.alive = True
        self.fenced = False
        self._lead = lead
        self._resumes_s = 0.0
        self._rng = ground.stream(f"process/{number}")
        self._view: dict[tuple[str, str], Raw] = {}
        self._cursor = 0
        self._fresh = asyncio.Event()
        skew = ground.active(Kind.CLOCK_SKEW)
        minutes = 0.0 if skew is None else self._rng.uniform(-10.0, 10.0)
        self._clock = LoopClock(timedelta(minutes=minutes))
        self.driver = self._make()
        self.task = ground.spawn(self._run())

    def heard(self) -> None:
        """The API server has changes to tell."""
        self._fresh.set()

    def registered(self, resource: Any) -> None:
        """A node came."""
        if self.alive and self.ground.now_s >= self._resumes_s:
            self.driver.registered(resource)

    def stop(self, seconds: float) -> None:
        """Stop it, as SIGSTOP does."""
        self._resumes_s = self.ground.now_s + seconds

    def kill(self, why: str) -> None:
        """End it at once."""
        if self.alive:
            self.alive = False
            self.ground.note(f"broker {self.number}", f"dead: {why}")
            self.task.cancel()
            self._lead.ended(self)

    async def _run(self) -> None:
        self._relist()
        try:
            await self.driver.sweep_projects()
            await self.driver.sweep_records()
            await self.driver.queue.settle()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch())
                group.create_task(
                    self.driver.run(
                        broker_interval=timedelta(seconds=SWEEP_S),
                        fleet_interval=timedelta(seconds=SWEEP_S),
                    )
                )
        except Exception as error:  # noqa: BLE001 - a boot that fails is a process that ends
            self.kill(f"boot: {type(error).__name__}")

    def _make(self) -> Controller:
        ground = self.ground
        catalog = _Catalog(ground)
        store = ground.store
        shared: dict[str, Any] = {
            "repository": self._port(InMemoryBrokerRepository(store, samples.CLUSTER), "postgres"),
            "catalog": catalog,
            "cluster": every_role(self._port(ground.cluster, "api")),
            "clock": self._clock,
        }
        mesh: dict[str, Any] = {
            "tokens": self._port(InMemoryTokenIssuer(store, ground.ids), "postgres"),
            "nodes": self._port(InMemoryNodeDeregistrar(store), "postgres"),
            "holds": self._port(InMemoryHoldLedger(store, samples.CLUSTER), "postgres"),
        }
        service = Service(ServicePorts(**shared, ids=ground.ids), cluster_id=samples.CLUSTER)
        teardown = Teardown(TeardownPorts(**shared, **mesh), service)
        options = ReconcilerOptions(
            enrolment=_ENROLMENT,
            token_ttl=timedelta(minutes=10),
            registration_timeout=timedelta(minutes=3),
        )
        ports = ReconcilerPorts(**shared, **mesh, reachable=lambda: timedelta(days=1))
        return Controller(
            view=ClusterView(
                records=lambda: self._view,
                projects=lambda: {
                    ("", name): raw for name, raw in ground.projects.projects.items()
                },
                breaker=CircuitBreaker(lambda: ground.now_s),
                record_exists=self._record_exists,
            ),
            repository=shared["repository"],
            reconciler=Reconciler(ports, service, teardown, options=options),
            teardown=teardown,
            project_reconciler=ProjectReconciler(
                ground.projects,
                InMemoryTenancyRepository(store, ground.ids),
                self._clock,
                cluster="local",
                settle=service.namespaces.settle,
            ),
            cluster_id=samples.CLUSTER,
        )

    async def _record_exists(self, namespace: str, name: str) -> bool:
        self._refused("record_exists", "api", None)
        return self.ground.cluster.records.get((namespace, name)) is not None

    def _port(self, port: Any, side: str) -> Any:
        return _Port(self, port, side)

    async def call(
        self,
        name: str,
        side: str,
        method: Callable[..., Awaitable[Any]],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Make one call of a port."""
        effect = name in EFFECTS
        if effect:
            await self._passage()
        elif not self.alive or self.ground.now_s < self._resumes_s:
            await self._halted()
        strike = self._lead.struck(self, name) if effect else None
        kind, length_s = strike or (None, 0.0)
        if kind is Kind.KILL_BEFORE:
            self.kill(f"before {name}")
            raise KilledError
        if kind is Kind.STOPPED:
            self.ground.note(f"broker {self.number}", f"stopped before {name} for {length_s:.1f}")
            self.stop(length_s)
            await self._passage()
        self._refused(name, side, kind)
        result = await method(*args, **kwargs)
        if effect:
            self._lead.happened(self, name, result)
        if kind is Kind.KILL_AFTER:
            self.kill(f"after {name}")
            raise KilledError
        if kind is Kind.REPLY_LOST:
            self.ground.note(f"broker {self.number}", f"lost the reply of {name}")
            raise _unavailable(side)
        return result

    async def _passage(self) -> None:
        """The way of an effect to the server, in which everybody else goes on.

        What is read takes no time: it is the time between reading and acting that matters.
        """
        await asyncio.sleep(self._rng.uniform(0.0005, 0.03))
        if not self.alive or self.ground.now_s < self._resumes_s:
            await self._halted()

    async def _halted(self) -> None:
        """Go on only while the process runs."""
        await asyncio.sleep(max(0.0, self._resumes_s - self.ground.now_s))
        if not self.alive:
            raise KilledError

    def _refused(self, name: str, side: str, kind: Kind | None) -> None:
        ground = self.ground
        # The write that it was stopped in is under way already; no later one is begun.
        if self.fenced and name in EFFECTS and (side == "postgres" or kind is not Kind.STOPPED):
            message = "cannot write: another process leads"
            raise StaleAggregateError(message)
        if kind is Kind.REFUSED:
            ground.note(f"broker {self.number}", f"refused {name}")
            raise _unavailable(side)
        if side == "postgres":
            if ground.active(Kind.POSTGRES_AWAY):
                raise _unavailable(side)
            return
        if ground.active(Kind.API_AWAY):
            raise _unavailable(side)
        conflicts = ground.active(Kind.CONFLICTS) and name in _CLUSTER_WRITES
        if conflicts and self._rng.random() < 0.5:
            message = "cannot write: it changed meanwhile"
            raise StaleAggregateError(message)

    def _relist(self) -> None:
        log = self.ground.cluster.log
        self._show(len(log))

    def _show(self, until: int) -> set[tuple[str, str]]:
        """Let the cache show the records as they were after a number of changes."""
        log = self.ground.cluster.log
        if until < self._cursor:
            shown: dict[tuple[str, str], Raw] = {}
            for change in log[:until]:
                if change.raw is None:
                    shown.pop(change.key, None)
                else:
                    shown[change.key] = change.raw
            changed = {
                key
                for key in shown.keys() | self._view.keys()
                if shown.get(key) != self._view.get(key)
            }
            self._view.clear()
            self._view.update(shown)
        else:
            changed = set()
            for change in log[self._cursor : until]:
                changed.add(change.key)
                if change.raw is None:
                    self._view.pop(change.key, None)
                else:
                    self._view[change.key] = change.raw
        self._cursor = until
        return changed

    async def _watch(self) -> None:
        ground = self.ground
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            await asyncio.sleep(self._rng.uniform(0.001, 0.1))
            await ground.over(Kind.WATCH_STALLED)
            await asyncio.sleep(max(0.0, self._resumes_s - ground.now_s))
            back = ground.active(Kind.TIME_TRAVEL)
            if back is not None:
                self._tell(self._show(max(0, self._cursor - self._rng.randint(1, 6))))
                await ground.over(Kind.TIME_TRAVEL)
            self._tell(self._show(len(ground.cluster.log)))

    def _tell(self, changed: set[tuple[str, str]]) -> None:
        for key in sorted(changed):
            self.driver.changed("provisioningrecords", key)


class _Port:
    def __init__(self, process: Process, port: Any, side: str) -> None:
        self._process = process
        self._port = port
        self._side = side

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Awaitable[Any]] = getattr(self._port, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._process.call(name, self._side, method, *args, **kwargs)

        self.__dict__[name] = call
        return call


class _Catalog(SampleCatalog):
    """The sample catalogue, as far as it is there now."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self._ground = ground

    def blueprint(self, name: str) -> BlueprintVersionSpec | None:
        return None if self._ground.active(Kind.BLUEPRINT_GONE) else super().blueprint(name)

    def project(self, project_id: ids.ProjectID) -> ProjectView | None:
        self.place(ready=self._ground.active(Kind.NAMESPACE_NOT_READY) is None)
        return super().project(project_id)


def _unavailable(side: str) -> Exception:
    if side == "postgres":
        return StoreUnavailableError("cannot reach the store")
    return OSError("cannot reach the API server")
