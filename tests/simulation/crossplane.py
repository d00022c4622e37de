"""Crossplane and the garbage collector: one XR's serial runs, and what its deletion does.

Observe, run, collect, apply; finalizers; foreground, background and orphan. As in
Crossplane 2.3: runs of one XR are serial, what is composed no longer is deleted before
anything is applied, a refused delete ends the run, what another XR controls does not exist
for it, and a run that began before a deletion goes on to its end. Source: reference,
crossplane §2.11; design §2.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from function.contract import names
from function.contract.record import Declaration, XRReference
from function.model.call import Ttl
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.store.aggregates import DrawnToken
from tests.simulation import composing
from tests.simulation.cluster import XR_KIND, XR_VERSION, Raw, controller_of, copied
from tests.simulation.composing import Composed, Machine, Seen
from tests.simulation.ground import Ground
from tests.simulation.schedule import Kind
from tests.unit.reconciler import samples

HALF_OPEN_S: Final = 30.0
"""Seconds between two changes that an open breaker passes on, the one that opens it the first."""

COLLECTOR_S: Final = 2.0
"""Seconds between two tries of the garbage collector."""

_DECLARATION: Final = samples.DECLARATION.model_dump(mode="json", by_alias=True, exclude_none=True)


class Composite:
    """One XR, from its first application to its end."""

    def __init__(self, ground: Ground, *, number: int, uid: str, labels: Raw, retry: int) -> None:
        self.ground = ground
        self.number = number
        self.name = f"web-{number}"
        self.uid = uid
        self.labels = labels
        self.retry = retry
        self.deletion: str | None = None
        self.finalizer = True
        self.gone = False
        self.paused = False
        self.wake = asyncio.Event()
        self._passed_s = -HALF_OPEN_S
        self._rng = ground.stream(f"crossplane/{self.name}/{uid}")
        self.record_name = names.record_name(
            group=names.GROUP, kind=XR_KIND, name=self.name, resource=names.RESOURCE_SUBSTRATE
        )
        self.publish()

    @property
    def reference(self) -> XRReference:
        """Name it as owner references do."""
        return XRReference(api_version=XR_VERSION, kind=XR_KIND, name=self.name, uid=self.uid)

    def publish(self) -> None:
        """Let the API server say how it is."""
        if self.gone:
            self.ground.cluster.forget_xr(self.name)
            return
        facts = XRFacts(
            exists=True,
            terminating=self.deletion is not None,
            composing_finalizer=self.finalizer,
            paused=self.paused,
        )
        self.ground.cluster.put_xr(self.name, self.uid, facts)

    def changed(self) -> None:
        """Somebody changed it: the API server tells, and Crossplane hears of it."""
        self.publish()
        self.heard()

    def heard(self) -> None:
        """Hear of a change of it or of what it composes, of few while the breaker is open."""
        if self._cut_off():
            if self.ground.now_s - self._passed_s < HALF_OPEN_S:
                return
            self._passed_s = self.ground.now_s
        self.wake.set()

    def _cut_off(self) -> bool:
        return self.ground.active(Kind.BREAKER, self.number) is not None

    def declaration(self) -> Raw | None:
        """Return what it declares, resolved; None while its blueprint is not there."""
        if self.ground.active(Kind.BLUEPRINT_GONE):
            return None
        declared = Declaration.model_validate(
            {
                **_DECLARATION,
                "xr": self.reference.model_dump(by_alias=True),
                "labels": self.labels,
                "retry": self.retry,
                **self.ground.registration(self.number),
            }
        )
        return declared.model_dump(mode="json", by_alias=True, exclude_none=True)

    def delete(self, how: str) -> None:
        """Delete it: in the background, in the foreground, or orphaning."""
        if self.deletion is not None or self.gone:
            return
        self.deletion = how
        self.ground.note("people", f"delete {self.name} {how}")
        self.changed()
        self.ground.spawn(self._collect(how))

    async def run(self) -> None:
        """Reconcile until it is gone."""
        failures = 0
        while not self.gone:
            self.wake.clear()
            try:
                again = await self._reconcile()
                failures = 0
            except RunError as error:
                self.ground.note(self.name, f"run failed: {error}")
                failures += 1
                again = min(60.0, 0.5 * 2**failures)
            with suppress(TimeoutError):
                async with asyncio.timeout(again):
                    await self.wake.wait()
            await asyncio.sleep(self._rng.uniform(0.01, 0.3))

    async def _reconcile(self) -> float:
        await self.ground.over(Kind.CROSSPLANE_AWAY)
        if self.deletion is not None:
            if self.finalizer:
                self.finalizer = False
                self.ground.note(self.name, "finalizer off")
                self.publish()
            return _seconds(Ttl.STEADY)
        if self.paused:
            return _seconds(Ttl.STEADY)
        record, observed = self._observed()
        # Core tells the function before each run whether the breaker is open.
        cut_off = self._cut_off()
        composed = await self._pipeline(record, observed)
        await asyncio.sleep(self._rng.uniform(0.001, 0.05))
        if observed is not None and composed.substrate is None:
            self._collect_substrate(observed)
        await asyncio.sleep(self._rng.uniform(0.001, 0.05))
        self._apply(composed)
        if composed.stage in _WAITING or self.declaration() is None:
            return _seconds(Ttl.WAITING)
        return _seconds(Ttl.CUT_OFF if cut_off else Ttl.STEADY)

    def _observed(self) -> tuple[Raw | None, Machine | None]:
        """Return what it composes; what another controls does not exist for it."""
        live = self.ground.cluster.record(self.record_name)
        record = None if live is None or controller_of(live) != self.uid else copied(live)
        for machine in self.ground.machines():
            controller = machine.live.controller
            if controller is not None and controller.uid == self.uid:
                return record, machine
        return record, None

    async def _pipeline(self, record: Raw | None, observed: Machine | None) -> Composed:
        slow = self.ground.active(Kind.SLOW_PIPELINE, self.number)
        took = self._rng.uniform(20.0, 110.0) if slow else self._rng.expovariate(5.0)
        await asyncio.sleep(took / 2)
        found = record
        if found is None:
            live = self.ground.cluster.record(self.record_name)
            found = None if live is None else copied(live)
        secrets = dict(self.ground.cluster.secrets)

        def secret(name: str) -> DrawnToken | None:
            return secrets.get((samples.NAMESPACE, name))

        seen = Seen(
            declaration=self.declaration(),
            record=found,
            observed=observed,
            machine=self.ground.machine,
            secret=secret,
        )
        composed = composing.compose(seen)
        self.ground.ran(self.name, seen, composed)
        await asyncio.sleep(took / 2)
        return composed

    def _collect_substrate(self, observed: Machine) -> None:
        if not self.ground.cluster.delete_substrate(observed.name, by=self.name):
            message = "the policy refuses the delete"
            raise RunError(message)

    def _apply(self, composed: Composed) -> None:
        cluster = self.ground.cluster
        if composed.record is not None:
            applied = cluster.apply_record(self.record_name, composed.record, xr=self.reference)
            if not applied:
                message = "another XR controls the record"
                raise RunError(message)
        name = composed.substrate
        if name is None:
            return
        if cluster.substrate(name) is not None:
            if not cluster.adopt_substrate(name, self.reference):
                message = "another XR controls the substrate"
                raise RunError(message)
            return
        # Server-side apply makes anew what went while the run was under way.
        self.ground.build(name, self.reference, born=composed.born, kept=composed.kept)

    async def _collect(self, how: str) -> None:
        """Do what the garbage collector does of a deletion."""
        if how == "orphan":
            await asyncio.sleep(self._rng.uniform(0.05, 1.0))
            self.ground.cluster.disown(self.uid)
        while self.finalizer or (how == "foreground" and self._has_dependents()):
            if how == "foreground":
                self._delete_dependents()
            await asyncio.sleep(self._rng.uniform(0.05, COLLECTOR_S))
        self.gone = True
        self.ground.note(self.name, "gone")
        self.publish()
        self.wake.set()
        # What still names it as owner has none any more, an orphan that a late run took included.
        while self._has_dependents():
            await asyncio.sleep(self._rng.uniform(0.05, COLLECTOR_S))
            self._delete_dependents()

    def _has_dependents(self) -> bool:
        record = self.ground.cluster.record(self.record_name)
        if record is not None and controller_of(record) == self.uid:
            return True
        return any(
            machine.live.controller is not None and machine.live.controller.uid == self.uid
            for machine in self.ground.machines()
        )

    def _delete_dependents(self) -> None:
        record = self.ground.cluster.record(self.record_name)
        if record is not None and controller_of(record) == self.uid:
            self.ground.cluster.delete_record(self.record_name)
        for machine in self.ground.machines():
            controller = machine.live.controller
            if controller is not None and controller.uid == self.uid and not self.gone:
                # Released and in the foreground; in the background nobody but the broker may.
                self.ground.cluster.delete_substrate(machine.name, by="collector")


class RunError(Exception):
    """A run ended early; it comes again."""


_WAITING: Final = frozenset({"seek", "vanishing", "drained", "wait-token"})


def _seconds(ttl: Ttl) -> float:
    """How soon a run comes back though nobody tells of a change."""
    return ttl.value.total_seconds()
