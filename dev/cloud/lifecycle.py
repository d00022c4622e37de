"""Moves one Machine one step on: observe, ask ``machine.decide``, act, record.

Every step may be cut off and repeated: the state on disk says what was done, facts are written
once, and the object's finalizer goes last. ``provider`` calls ``advance`` for one Machine at a
time. Logs name machines and steps, never a document.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from dev.cloud import machine as machines
from dev.cloud import status
from dev.cloud.boot import BootError, Hypervisor, PowerOn
from dev.cloud.kube import MachineApi, Object
from dev.cloud.machine import Decision, Machine, Phase, State, Step
from dev.cloud.store import Fact, Store, timestamp

LOG = logging.getLogger("demo-cloud")

# A machine that does not power on is tried again at this pace, in seconds.
_BOOT_RETRY_S = 5.0
_DELETE_FAULT = "cannot delete machine: the cloud answered with an internal error (on demand)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the cloud takes, in seconds, 0 or more."""

    create_s: float = 2.0
    delete_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What one step left: the newest object seen, and when to look again (``None``: on change)."""

    obj: Object
    look_again_s: float | None


class Lifecycle:
    """The cloud's actions on its Machines."""

    def __init__(
        self,
        api: MachineApi,
        store: Store,
        hypervisor: Hypervisor,
        *,
        timing: Timing,
        lifetime_pid: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._store = store
        self._hypervisor = hypervisor
        self._timing = timing
        self._lifetime_pid = lifetime_pid
        self._clock = clock

    async def advance(self, obj: Object) -> Advance:
        """Does the next step for the machine behind ``obj`` and shows it in its status.

        Raises:
            ApiException: the API server refused; nothing is lost, the step comes again.
        """
        machine = machines.read(obj)
        decision, state = await asyncio.to_thread(self._decide, machine)
        if decision.step is not Step.NONE:
            LOG.info("%s: %s", machine.key, decision.step.value)
        fault = ""
        look_again_s = decision.look_again_s
        match decision.step:
            case Step.CLAIM:
                return Advance(obj=await self._claim(machine), look_again_s=look_again_s)
            case Step.RELEASE:
                return Advance(obj=await self._release(machine), look_again_s=None)
            case _:
                try:
                    state = await asyncio.to_thread(self._act, decision.step, obj, state)
                except BootError as error:
                    fault, look_again_s = str(error), _BOOT_RETRY_S
        if decision.step is Step.FAIL_DELETE:
            fault = _DELETE_FAULT
        obj = await self._show(obj, machine, state, fault)
        return Advance(obj=obj, look_again_s=look_again_s)

    def _decide(self, machine: Machine) -> tuple[Decision, State | None]:
        folder = self._store.folder(machine.uid)
        state = self._store.load(machine.uid)
        if state is not None and state.phase is Phase.RUNNING and state.exit_code is None:
            state = self._note_outcome(machine, state)
        running = self._hypervisor.is_running(folder)
        now = self._clock()
        return machines.decide(machine, state, running=running, now=now), state

    def _note_outcome(self, machine: Machine, state: State) -> State:
        code = self._hypervisor.exit_code(self._store.folder(machine.uid))
        if code is None:
            return state
        state = dataclasses.replace(state, exit_code=code)
        self._store.record(Fact.DOCUMENT_FINISHED, machine, state.machine_id)
        self._store.save(machine.uid, state)
        return state

    def _act(self, step: Step, obj: Object, state: State | None) -> State | None:
        machine = machines.read(obj)
        match step:
            case Step.CREATE | Step.REFUSE:
                return self._create(machine, refused=step is Step.REFUSE)
            case Step.BOOT if state:
                return self._enter(machine, state, Phase.BOOTING, Fact.BOOTING)
            case Step.POWER_ON if state:
                return self._power_on(obj, machine, state)
            case Step.BEGIN_DELETE if state:
                state = dataclasses.replace(state, due_at=self._clock() + self._timing.delete_s)
                return self._enter(machine, state, Phase.DELETING, Fact.DELETE_REQUESTED)
            case Step.FAIL_DELETE if state:
                self._store.record(Fact.DELETE_FAILED, machine, state.machine_id)
            case Step.POWER_OFF:
                self._hypervisor.power_off(self._store.folder(machine.uid))
            case Step.DESTROY if state:
                self._hypervisor.destroy(self._store.folder(machine.uid))
                return self._enter(machine, state, Phase.DELETED, Fact.DELETED)
            case _:
                pass
        return state

    def _create(self, machine: Machine, *, refused: bool) -> State:
        now = self._clock()
        state = State(
            machine_id=machine.machine_id,
            phase=Phase.FAILED if refused else Phase.CREATING,
            created_at=timestamp(),
            due_at=now + self._timing.create_s,
        )
        fact = Fact.CREATE_FAILED if refused else Fact.CREATED
        return self._enter(machine, state, state.phase, fact)

    def _enter(self, machine: Machine, state: State, phase: Phase, fact: Fact) -> State:
        # The fact first: after a crash in between it is not written twice, and never missing.
        self._store.record(fact, machine, state.machine_id)
        state = dataclasses.replace(state, phase=phase)
        self._store.save(machine.uid, state)
        return state

    def _power_on(self, obj: Object, machine: Machine, state: State) -> State:
        self._hypervisor.power_on(
            PowerOn(
                folder=self._store.folder(machine.uid),
                machine_id=state.machine_id,
                name=machine.name,
                user_data=None if machine.faults.boot else machines.user_data(obj),
                lifetime_pid=self._lifetime_pid,
            )
        )
        return self._enter(machine, state, Phase.RUNNING, Fact.RUNNING)

    async def _claim(self, machine: Machine) -> Object:
        body = {
            "metadata": {
                "resourceVersion": machine.resource_version,
                "finalizers": [*machine.finalizers, machines.FINALIZER],
                "annotations": {machines.EXTERNAL_NAME: machine.machine_id},
            }
        }
        return await self._api.patch(machine, body)

    async def _release(self, machine: Machine) -> Object:
        kept = [name for name in machine.finalizers if name != machines.FINALIZER]
        body = {"metadata": {"resourceVersion": machine.resource_version, "finalizers": kept}}
        return await self._api.patch(machine, body)

    async def _show(self, obj: Object, machine: Machine, state: State | None, fault: str) -> Object:
        observed = obj.get("status") or {}
        wanted = status.render(machine, state, observed, fault=fault, now=_seconds(timestamp()))
        if wanted == observed:
            return obj
        await self._warn(machine, observed, wanted)
        return await self._api.patch_status(machine, wanted)

    async def _warn(self, machine: Machine, observed: Object, wanted: Object) -> None:
        """Leaves one event per new failure, not one per try."""
        before = {(item["type"], item["status"]) for item in observed.get("conditions", ())}
        for item in wanted["conditions"]:
            failure = item["reason"] == "ReconcileError"
            if failure and (item["type"], item["status"]) not in before:
                await self._api.event(machine, "CannotReconcile", item.get("message", ""))


def _seconds(moment: str) -> str:
    """Cuts a timestamp to whole seconds, as Kubernetes times are."""
    return moment[:19] + "Z"
