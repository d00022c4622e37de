"""One world from its seed to its end: played, mended, at rest, taken down.

Putting the parts together, who leads, when each stage is over. `play` is the one way in.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from function.contract.strategy import Phase
from reconciler.app.registration.registration import RegistrationPorts, RegistrationService
from reconciler.domain.aggregate import ids
from tests.fakes.budget import unlimited
from tests.fakes.enrolment import InMemoryEnrolmentStore
from tests.fakes.identity import InMemoryTenancyRepository
from tests.simulation import hearing, loop
from tests.simulation.cloud import Cloud
from tests.simulation.composing import Composed, Seen
from tests.simulation.ground import Ground
from tests.simulation.people import People, condition
from tests.simulation.process import LEASE_S, SWEEP_S, Process, Strike
from tests.simulation.promises import Breach, Promises
from tests.simulation.schedule import AT_EFFECT, Kind, Schedule
from tests.unit.reconciler import samples

MENDED_MAX_S: Final = 3000.0
"""How long a mended world may take to come to rest: people wait, machines are made again."""

ENDED_MAX_S: Final = 1500.0
"""How long everything may take to be gone once nothing hangs."""

_LOOK_S: Final = 5.0
_REMEDY_S: Final = 60.0

_QUIET: Final = frozenset({"hold", "remember"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a world.

    Attributes:
        lives: Aggregates that were taken from their request to Deleted.
        digest: Of the trace.
    """

    schedule: Schedule
    breach: Breach | None
    lives: int
    effects: int
    digest: str
    trace: tuple[str, ...]
    ended_s: float


class World:
    """One world; implements `process.Lead`."""

    def __init__(self, schedule: Schedule) -> None:
        self.ground = Ground(schedule)
        self.promises = Promises(self.ground)
        store = self.ground.store
        ports = RegistrationPorts(
            store=InMemoryEnrolmentStore(store),
            secrets=self.ground.ids,
            ids=self.ground.ids,
            clock=self.ground.clock,
            project_budget=unlimited(),
        )
        self.cloud = Cloud(self.ground, RegistrationService(ports, on_registered=self._registered))
        self.people = People(self.ground, self.promises)
        self.processes: list[Process] = []
        self.effects = 0
        self._begun = 0
        self._rng = self.ground.stream("world")
        self.ground.cluster.begin(heard=self._heard, deleting=self._deleting, new_uid=self._uid)
        self._uids = 0

    async def play(self) -> None:
        """Play it to its end, or to the first breach."""
        tenancy = InMemoryTenancyRepository(self.ground.store, self.ground.ids)
        await tenancy.ensure_domain("acme", "100.64.0.0/16")
        await tenancy.ensure_project(samples.PROJECT, "shop", "acme")
        self._lead()
        self.people.begin()
        self.ground.spawn(self._split())
        horizon = self.ground.schedule.horizon_s
        if not await self._until(lambda: self.ground.now_s >= horizon, horizon + 60.0):
            return
        self.ground.note("world", "mended")
        self.people.mend()
        if not await self._until(self._settled, MENDED_MAX_S, remedy=True, for_s=20.0):
            self.promises.broken(5, f"it does not come to rest: {self._why()}")
            return
        self.promises.at_rest()
        await self._rests()
        self.ground.note("world", "ends")
        for composite in list(self.people.composites.values()):
            composite.delete(self._rng.choice(("background", "foreground")))
        if not await self._until(self._gone, ENDED_MAX_S):
            self.promises.broken(5, f"it does not end: {self._why()}")
            return
        await asyncio.sleep(2 * SWEEP_S)
        self.ground.cluster.collect_secrets()
        self.promises.at_the_end()

    # What a process asks.

    def struck(self, process: Process, effect: str) -> Strike | None:
        """Tell what happens to the effect that is about to happen."""
        if self.ground.mended:
            return None
        self.effects += 1
        for plan in self.ground.schedule.plans:
            if plan.kind in AT_EFFECT and plan.at == self.effects:
                length = plan.length_s if plan.kind is not Kind.STOPPED else 2.0 + plan.length_s
                if plan.kind is Kind.STOPPED and length > LEASE_S:
                    self.ground.spawn(self._succeed(process, length))
                return plan.kind, length
        return None

    def happened(self, process: Process, effect: str, result: Any) -> None:
        """Hear of an effect."""
        self.ground.note(f"broker {process.number}", effect)
        self.promises.step(effect)

    def ended(self, process: Process) -> None:
        """Hear that a process is dead: another one follows."""
        if process in self.processes:
            self.processes.remove(process)
            self.ground.spawn(self._follow(self._rng.uniform(0.5, 20.0)))

    def _lead(self) -> None:
        self._begun += 1
        self.ground.note(f"broker {self._begun}", "begins")
        self.processes.append(Process(self.ground, self, number=self._begun))

    async def _follow(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        if not any(not process.fenced for process in self.processes):
            self._lead()

    async def _succeed(self, process: Process, length_s: float) -> None:
        """A successor leads once the lease is over; the old leader finds out when it goes on."""
        await asyncio.sleep(LEASE_S)
        if not process.alive:
            return
        process.fenced = True
        self._lead()
        await asyncio.sleep(length_s - LEASE_S + self._rng.uniform(0.5, 2.0))
        process.kill("its lease is another's")

    async def _split(self) -> None:
        """Let two processes lead at once."""
        for plan in self.ground.schedule.plans:
            if plan.kind is Kind.SPLIT_LEAD:
                await asyncio.sleep(max(0.0, plan.at - self.ground.now_s))
                self._lead()
                await asyncio.sleep(plan.length_s)
                for process in self.processes[1:]:
                    process.kill("its lease is another's")

    def _registered(self, resource: ids.ProvisionedResourceID) -> None:
        self.promises.step()
        for process in self.processes:
            process.registered(resource)

    def _heard(self, name: str) -> None:
        for process in self.processes:
            process.heard()
        self.people.heard(name)
        self.promises.step()

    def _deleting(self, live: Any, name: str, by: str) -> None:
        self.ground.note(by, f"deletes {self.ground.short(name)}")
        self.promises.deleting(live, name, by)
        self.cloud.deleting(live)

    def _uid(self, kind: str) -> str:
        self._uids += 1
        return f"{kind}-{self._uids}"

    # When a stage is over.

    async def _until(
        self,
        over: Callable[[], bool],
        within_s: float,
        *,
        remedy: bool = False,
        for_s: float = 0.0,
    ) -> bool:
        """Wait until something has held for a while; False: it did not in time."""
        deadline = self.ground.now_s + within_s
        mended = since = self.ground.now_s
        while self.ground.now_s < deadline:
            if self.ground.failed is not None:
                raise self.ground.failed
            if self.promises.breach is not None:
                return False
            since = since if over() else self.ground.now_s + _LOOK_S
            if self.ground.now_s - since >= for_s:
                return True
            await asyncio.sleep(_LOOK_S)
            if remedy and self.ground.now_s - mended >= _REMEDY_S:
                mended = self.ground.now_s
                self.ground.cluster.collect_secrets()
                self.people.remedy()
        return False

    def _settled(self) -> bool:
        resources = self.ground.store.resources.values()
        going = [
            item
            for item in resources
            if item.deletion_requested_at is not None and item.phase is not Phase.DELETED
        ]
        records = {
            name: raw for (_, name), raw in self.ground.cluster.records.items() if raw is not None
        }
        for composite in self.people.composites.values():
            record = records.pop(composite.record_name, None)
            if composite.gone:
                if record is not None:
                    return False
                continue
            if composite.deletion is not None or record is None:
                return False
            if condition(record, "Ready").get("status") != "True":
                return False
        started = len(self.people.composites) == len(self.ground.schedule.xrs)
        alone = all(not process.fenced for process in self.processes)
        return started and alone and not going and not records

    def _gone(self) -> bool:
        ended = all(item.phase is Phase.DELETED for item in self.ground.store.resources.values())
        records = any(raw is not None for raw in self.ground.cluster.records.values())
        xrs = all(composite.gone for composite in self.people.composites.values())
        return ended and xrs and not records

    async def _rests(self) -> None:
        """Check that what is settled stays so, and that nothing is written any more."""
        await asyncio.sleep(SWEEP_S + _LOOK_S)
        before = self._written()
        at = len(self.ground.trace)
        await asyncio.sleep(SWEEP_S + _LOOK_S)
        if not self._settled():
            self.promises.broken(9, f"it does not stay at rest: {self._why()}")
        if self._written() != before:
            lines = self.ground.trace[at : at + 5]
            what = [b for a, b in zip(before, self._written(), strict=True) if a != b]
            self.promises.broken(9, f"at rest it writes: {lines} {what}")

    def _written(self) -> tuple[Any, ...]:
        store, cluster = self.ground.store, self.ground.cluster
        return (
            [(item.id, item.version) for item in store.resources.values()],
            [(item.id, item.expires_at, item.revoked_at) for item in store.tokens.values()],
            tuple(cluster.journal),
            len(cluster.log),
        )

    def _why(self) -> str:
        phases = [f"{i.xr_name[-6:]} {i.phase}" for i in self.ground.store.resources.values()]
        said = [
            f"{name}: {[(c['type'], c['status'], c['reason']) for c in conditions]}"
            for (_, name), raw in self.ground.cluster.records.items()
            if raw is not None and (conditions := (raw.get("status") or {}).get("conditions", []))
        ]
        return f"{phases} {said}"


def play(
    schedule: Schedule, *, observer: Callable[[str, Seen, Composed], None] | None = None
) -> Played:
    """Play a world. Equal schedules give equal traces."""

    async def whole(said: hearing.Heard) -> Played:
        world = World(schedule)
        world.ground.observer = observer
        await world.play()
        unforeseen = said.unforeseen()
        if unforeseen is not None:
            world.promises.broken(9, f"a tick died of what nobody foresaw: {unforeseen}")
        world.promises.secrets("\n".join(said.lines))
        ended = [r for r in world.ground.store.resources.values() if r.phase is Phase.DELETED]
        return Played(
            schedule=schedule,
            breach=world.promises.breach,
            lives=len(ended),
            effects=world.effects,
            digest=world.ground.digest(),
            trace=tuple(world.ground.trace),
            ended_s=world.ground.now_s,
        )

    # Jitter comes from the process's own dice.
    dice = random.getstate()
    random.seed(schedule.seed)
    try:
        with hearing.heard() as said:
            return loop.run(whole(said))
    finally:
        random.setstate(dice)
