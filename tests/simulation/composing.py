"""What the function answers in one run: its own table over a short reading of the facts.

The model that the simulation runs with, without rendering. That it answers as the real
function does is what `test_composing` shows, on the states that simulated lives come
through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from function.compose import stage
from function.compose.stage import RecordState, SubstrateLookup, SubstratePlan, TokenState
from function.contract.secrets import TokenPlaintext
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.store.aggregates import DrawnToken
from tests.simulation.cluster import SUBSTRATE_KIND, SUBSTRATE_VERSION, Raw

_UNOBSERVED: Final = {"exists": False, "ready": False, "failed": False, "reason": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A substrate as Crossplane shows it to the function.

    Attributes:
        generation: The bootstrap generation that is stamped on it.
    """

    live: LiveObject
    name: str
    ready: bool
    failed: bool
    generation: int | None
    token: TokenPlaintext | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one run sees.

    Attributes:
        declaration: What the XR declares; None while what it refers to is not there.
        record: The record, whether the XR composes it or it was looked up by its name.
        observed: The substrate that the XR composes.
        machine: Looks a substrate up by its name.
        secret: Looks a token Secret up by its name.
    """

    declaration: Raw | None
    record: Raw | None
    observed: Machine | None
    machine: Callable[[str], Machine | None]
    secret: Callable[[str], DrawnToken | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What one run composes.

    Attributes:
        record: The record's spec; None: no record.
        substrate: Its name; None: no substrate.
        born: It is to be made with this token, of this generation; None: it stays as it is.
    """

    record: Raw | None
    substrate: str | None
    born: DrawnToken | None
    kept: Machine | None
    stage: str


def compose(seen: Seen) -> Composed:
    """Answer one run. Pure but for the look-ups."""
    record, status = seen.record, _status(seen.record)
    terminating = record is not None and "deletionTimestamp" in record["metadata"]
    name = status.get("xrName")
    present = status.get("substrate") == "Present"
    accepted = present and name is not None and status.get("accepted") is not None
    sought: Machine | None = None
    looked = accepted and seen.observed is None and not terminating
    if looked and name is not None:
        sought = seen.machine(name)
    sight = _lookup(seen.observed, sought, looked=looked)
    token = _token(seen, status)
    chosen = stage.stage_of(
        stage.StageFacts(
            preview=False,
            refused=seen.declaration is None,
            record=_state(record, terminating=terminating),
            accepted=accepted,
            absent=status.get("substrate") == "Absent",
            sight=sight,
            held=_held(status),
            token=TokenState.ABSENT if token is None else TokenState.AT_HAND,
            acknowledged=record is not None and record["spec"].get("released") is True,
        )
    )
    live = seen.observed if sight is SubstrateLookup.OBSERVED else sought
    live = live if sight in (SubstrateLookup.OBSERVED, SubstrateLookup.FOUND) else None
    plan = stage.PLANS[chosen]
    keeps = plan in (SubstratePlan.KEEP, SubstratePlan.RENDER) and live is not None
    born = plan is SubstratePlan.BIRTH
    shown = sought if sight is SubstrateLookup.VANISHING else live
    spec = None if chosen in stage.UNRECORDED else _spec(seen, status, live, shown)
    return Composed(
        record=spec,
        substrate=live.name if keeps and live is not None else name if born else None,
        born=token if born else None,
        kept=live if keeps else None,
        stage=chosen.value,
    )


def _spec(seen: Seen, status: Raw, live: Machine | None, shown: Machine | None) -> Raw | None:
    record = seen.record
    declaration = seen.declaration
    if declaration is None:
        if record is None:
            return None
        declaration = record["spec"]["declaration"]
    listed = _listed(seen, status, live)
    spec: Raw = {
        "declaration": declaration,
        "substrate": [] if listed is None else [listed],
        "observed": _UNOBSERVED if shown is None else _observed(shown, record),
    }
    if status.get("substrate") == "Absent":
        spec["released"] = True
    return spec


def _listed(seen: Seen, status: Raw, live: Machine | None) -> Raw | None:
    name = status.get("xrName") if live is None else live.name
    if name is None and seen.record is not None:
        # Without a status the record's own word counts, unless another run outlived it.
        outlived = seen.record["spec"].get("released") is True
        written = seen.record["spec"].get("substrate") or []
        return None if outlived or not written else dict(written[0])
    if name is None:
        return None
    return {"apiVersion": SUBSTRATE_VERSION, "kind": SUBSTRATE_KIND, "name": name}


def _observed(machine: Machine, record: Raw | None) -> Raw:
    observed: Raw = {
        "exists": True,
        "ready": machine.ready,
        "failed": machine.failed,
        "reason": "Quota: no more machines" if machine.failed else "",
    }
    stamp = machine.generation
    stamped = observed if stamp is None else {**observed, "bootstrapGeneration": stamp}
    return {**stamped, "uid": machine.live.uid}


def _lookup(observed: Machine | None, sought: Machine | None, *, looked: bool) -> SubstrateLookup:
    if observed is not None:
        return SubstrateLookup.OBSERVED
    if not looked:
        return SubstrateLookup.UNKNOWN
    if sought is None:
        return SubstrateLookup.MISSING
    return SubstrateLookup.VANISHING if sought.live.terminating else SubstrateLookup.FOUND


def _state(record: Raw | None, *, terminating: bool) -> RecordState:
    if record is None:
        return RecordState.NONE
    return RecordState.TERMINATING if terminating else RecordState.ALIVE


def _token(seen: Seen, status: Raw) -> DrawnToken | None:
    bootstrap = status.get("bootstrap") or {}
    named = (bootstrap.get("secretRef") or {}).get("name")
    if named is None or bootstrap.get("state") != "Issued":
        return None
    token = seen.secret(named)
    return token if token is not None and token.generation == bootstrap["generation"] else None


def _held(status: Raw) -> bool:
    for item in status.get("conditions") or []:
        if item["type"] == "Admitted" and item["status"] == "False":
            return True
        if item["type"] == "Stalled" and item["status"] == "True":
            return bool(item["reason"] == "SubstrateLost")
    return False


def _status(record: Raw | None) -> dict[str, Any]:
    return {} if record is None else record.get("status") or {}
