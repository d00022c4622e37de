"""What a Machine is and what the cloud does with it next: values and one pure decision.

No I/O and no clock. ``lifecycle`` observes, asks ``decide`` and acts; the kind's field names stand
here once (``crd.yaml`` is compared with them by a test).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

GROUP = "cloud.demo.plexsphere.com"
VERSION = "v1alpha1"
PLURAL = "machines"
FINALIZER = f"machine.{GROUP}"
EXTERNAL_NAME = "crossplane.io/external-name"
PAUSED = "crossplane.io/paused"

# How soon a machine that is being started or whose document runs is looked at again, in seconds:
# a boot takes about one.
_WATCHED_CLOSELY_S = 0.25
# How soon a failed deletion is tried again, and a hanging one looked at, in seconds.
DELETE_RETRY_S = 2.0


class Phase(StrEnum):
    """Where a machine stands, as kept on disk."""

    CREATING = "creating"
    BOOTING = "booting"
    RUNNING = "running"
    FAILED = "failed"
    DELETING = "deleting"
    DELETED = "deleted"


class Fault(StrEnum):
    """How a creation or a deletion goes wrong on demand."""

    HANG = "hang"
    FAIL = "fail"
    REFUSE = "refuse"


class Step(StrEnum):
    """The one thing to do next with a machine."""

    NONE = "none"
    CLAIM = "claim"
    CREATE = "create"
    REFUSE = "refuse"
    BOOT = "boot"
    POWER_ON = "power-on"
    BEGIN_DELETE = "begin-delete"
    FAIL_DELETE = "fail-delete"
    POWER_OFF = "power-off"
    DESTROY = "destroy"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What is to go wrong, from the Machine's annotations and tags.

    Attributes:
        create: ``FAIL``: the cloud refuses the machine for good; ``HANG``: it never comes up;
            ``REFUSE``: nor does it, and the cloud says why again and again.
        boot: The machine runs but its document never does.
        delete: ``None``: deletion works.
    """

    create: Fault | None = None
    boot: bool = False
    delete: Fault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The provider's view of one object; ``user_data`` is secret and left out of its repr."""

    uid: str
    namespace: str
    name: str
    generation: int
    resource_version: str
    deleting: bool
    claimed: bool
    paused: bool
    faults: Faults
    instance_type: str
    region: str
    finalizers: tuple[str, ...]

    @property
    def key(self) -> str:
        """``namespace/name``, for logs."""
        return f"{self.namespace}/{self.name}"

    @property
    def machine_id(self) -> str:
        """The cloud's own id, one per uid."""
        return f"i-{self.uid.replace('-', '')[:17]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the cloud knows of a machine, kept on disk.

    Attributes:
        due_at: When the running creation or deletion is over, seconds since the epoch.
        created_at: RFC 3339.
        exit_code: Of the document; ``None``: it has not ended, or never ran.
    """

    machine_id: str
    phase: Phase
    created_at: str
    due_at: float = 0.0
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, and when to look again in seconds (``None``: when the object changes)."""

    step: Step
    look_again_s: float | None = None


def read(obj: Mapping[str, Any]) -> Machine:
    """Reads a Machine as the API server holds it; the CRD's schema vouches for its types."""
    metadata = obj["metadata"]
    wanted = obj.get("spec", {}).get("forProvider", {})
    annotations = metadata.get("annotations") or {}
    finalizers = tuple(metadata.get("finalizers") or ())
    return Machine(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        generation=metadata.get("generation", 0),
        resource_version=metadata.get("resourceVersion", ""),
        deleting="deletionTimestamp" in metadata,
        claimed=FINALIZER in finalizers,
        paused=annotations.get(PAUSED) == "true",
        faults=_faults(annotations, wanted.get("tags") or {}),
        instance_type=wanted.get("instanceType", ""),
        region=wanted.get("region", ""),
        finalizers=finalizers,
    )


def user_data(obj: Mapping[str, Any]) -> str:
    """The document as received; the caller must not log it."""
    return str(obj.get("spec", {}).get("forProvider", {}).get("userData") or "")


_NEVER_UP = frozenset({Fault.HANG, Fault.REFUSE})


def _faults(annotations: Mapping[str, str], tags: Mapping[str, str]) -> Faults:
    def wanted(what: str) -> str:
        return annotations.get(f"{GROUP}/{what}", tags.get(f"demo-{what}", ""))

    def fault(what: str, *known: Fault) -> Fault | None:
        return next((each for each in known if each == wanted(what)), None)

    return Faults(
        create=fault("create", *Fault),
        boot=wanted("boot") == "never",
        delete=fault("delete", Fault.HANG, Fault.FAIL),
    )


def decide(machine: Machine, state: State | None, *, running: bool, now: float) -> Decision:
    """Answers what the cloud does next.

    Total: every combination has an answer.

    Args:
        machine: The object.
        state: From disk; ``None``: the cloud has never seen this uid.
        running: Whether any process of the machine lives.
        now: Seconds since the epoch.
    """
    if machine.paused:
        return Decision(step=Step.NONE)
    if machine.deleting:
        return _decide_deletion(machine, state, running=running, now=now)
    if not machine.claimed:
        return Decision(step=Step.CLAIM, look_again_s=0.0)
    if state is None:
        refused = machine.faults.create is Fault.FAIL
        return Decision(step=Step.REFUSE if refused else Step.CREATE, look_again_s=0)
    return _decide_life(machine, state, running=running, now=now)


def _decide_life(machine: Machine, state: State, *, running: bool, now: float) -> Decision:
    match state.phase:
        case Phase.CREATING if state.due_at > now:
            return Decision(step=Step.NONE, look_again_s=state.due_at - now)
        case Phase.CREATING if machine.faults.create not in _NEVER_UP:
            return Decision(step=Step.BOOT, look_again_s=0.0)
        case Phase.BOOTING:
            return Decision(step=Step.POWER_ON, look_again_s=0.0)
        case Phase.RUNNING if not running:
            return Decision(step=Step.POWER_ON, look_again_s=0.0)
        case Phase.RUNNING if state.exit_code is None and not machine.faults.boot:
            return Decision(step=Step.NONE, look_again_s=_WATCHED_CLOSELY_S)
        case _:
            return Decision(step=Step.NONE)


def _decide_deletion(
    machine: Machine, state: State | None, *, running: bool, now: float
) -> Decision:
    if not machine.claimed:
        return Decision(step=Step.NONE)
    if state is None or state.phase in {Phase.FAILED, Phase.DELETED}:
        return Decision(step=Step.RELEASE)
    if state.phase is not Phase.DELETING:
        return Decision(step=Step.BEGIN_DELETE, look_again_s=0.0)
    return _decide_teardown(machine.faults.delete, state, running=running, now=now)


def _decide_teardown(fault: Fault | None, state: State, *, running: bool, now: float) -> Decision:
    match fault:
        case Fault.HANG:
            return Decision(step=Step.NONE, look_again_s=DELETE_RETRY_S)
        case Fault.FAIL:
            return Decision(step=Step.FAIL_DELETE, look_again_s=DELETE_RETRY_S)
        case None if running:
            return Decision(step=Step.POWER_OFF, look_again_s=0.0)
        case None if state.due_at > now:
            return Decision(step=Step.NONE, look_again_s=state.due_at - now)
        case _:
            return Decision(step=Step.DESTROY, look_again_s=0.0)
