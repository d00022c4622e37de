"""People: they apply, edit and delete, break the glass, and mend what only they can mend.

What the plans make them do, and what the conditions of a record ask of them.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from function.contract.conditions import Reason
from tests.simulation.cluster import Raw
from tests.simulation.crossplane import Composite
from tests.simulation.ground import Ground
from tests.simulation.promises import Promises
from tests.simulation.schedule import BY_PEOPLE, Kind, Plan

REMEDIES_MAX: Final = 4
"""Times a person does what one XR's record asks for, before they call it a fault."""

_RETRIES: Final = frozenset({Reason.SUBSTRATE_LOST.value, Reason.FAILED.value})
_REPLACES: Final = frozenset(
    {
        Reason.TOKEN_EXPIRED.value,
        Reason.TOKEN_REVOKED.value,
        Reason.REGISTRATION_TIMEOUT.value,
        Reason.RECREATIONS_EXHAUSTED.value,
        Reason.NEVER_REPORTED.value,
    }
)


class People:
    """Everybody with a keyboard."""

    def __init__(self, ground: Ground, promises: Promises) -> None:
        self._ground = ground
        self._promises = promises
        self._rng = ground.stream("people")
        self._uids = 0
        self._remedies: dict[int, int] = {}
        self.composites: dict[int, Composite] = {}

    def begin(self) -> None:
        """Set out what is planned."""
        for number, at in enumerate(self._ground.schedule.xrs):
            self._ground.spawn(self._later(at, number))
        for plan in self._ground.schedule.plans:
            if plan.kind in BY_PEOPLE or plan.kind is Kind.POLICIES_GONE:
                self._ground.spawn(self._do(plan))

    def apply(self, number: int) -> None:
        """Apply an XR, for the first time or again."""
        self._uids += 1
        self.composites[number] = Composite(
            self._ground,
            number=number,
            uid=f"xr-{self._uids}",
            labels={"team": "checkout"},
            retry=0,
        )
        self._ground.note("people", f"apply web-{number}")
        self._ground.spawn(self.composites[number].run())

    def heard(self, name: str) -> None:
        """Let Crossplane hear of a change of an object."""
        for composite in self.composites.values():
            if composite.gone:
                continue
            record = self._ground.cluster.record(composite.record_name)
            status = {} if record is None else record.get("status") or {}
            if name in (composite.record_name, status.get("xrName")):
                composite.heard()

    def mend(self) -> None:
        """Undo what stands, once nothing goes wrong any more."""
        self._ground.mended = True
        self._ground.cluster.unenforced = ""
        for composite in self.composites.values():
            if composite.paused and not composite.gone:
                composite.paused = False
                composite.changed()

    def remedy(self) -> None:
        """Do what each record asks a person for."""
        for number, composite in list(self.composites.items()):
            asked = self._asked(composite)
            if asked is None:
                continue
            self._remedies[number] = self._remedies.get(number, 0) + 1
            if self._remedies[number] > REMEDIES_MAX:
                self._promises.broken(5, f"web-{number} still asks for {asked}")
                return
            self._ground.note("people", f"remedy of web-{number}: {asked}")
            if asked == "apply":
                self.apply(number)
            elif asked in _RETRIES:
                composite.retry += 1
                composite.changed()
            else:
                self._ground.cluster.delete_record(composite.record_name)

    def _break_glass(self, name: str) -> None:
        """Delete a substrate by force; in the background it is gone before its machine."""
        live = self._ground.cluster.substrate(name)
        if live is None:
            return
        self._ground.cluster.delete_substrate(name, by="break-glass")
        if self._rng.random() < 0.5:
            self._ground.note("people", f"{self._ground.short(name)} in the background")
            self._ground.cluster.drop_substrate(name, live.uid)

    def _asked(self, composite: Composite) -> str | None:
        record = self._ground.cluster.record(composite.record_name)
        if composite.gone:
            terminating = record is not None and "deletionTimestamp" in record["metadata"]
            return "apply" if record is not None and not terminating else None
        if composite.deletion is not None or record is None:
            return None
        said = condition(record, "Stalled")
        known = said.get("reason") in _RETRIES | _REPLACES
        return str(said["reason"]) if said.get("status") == "True" and known else None

    async def _later(self, at: float, number: int) -> None:
        await asyncio.sleep(at)
        self.apply(number)

    async def _do(self, plan: Plan) -> None:
        await asyncio.sleep(plan.at)
        if self._ground.mended:
            return
        if plan.kind is Kind.POLICIES_GONE:
            self._ground.cluster.unenforced = "plexsphere-hold"
            await asyncio.sleep(plan.length_s)
            self._ground.cluster.unenforced = ""
            return
        composite = self.composites.get(plan.target)
        if composite is not None:
            await self._act(plan, composite)

    async def _act(self, plan: Plan, composite: Composite) -> None:
        cluster = self._ground.cluster
        self._ground.note("people", str(plan))
        match plan.kind:
            case Kind.DELETE_BACKGROUND | Kind.DELETE_FOREGROUND | Kind.DELETE_ORPHAN:
                composite.delete(plan.kind.removeprefix("delete-"))
            case Kind.DELETE_RECORD:
                cluster.delete_record(composite.record_name)
            case Kind.STRIP_FINALIZER:
                cluster.strip_finalizers(composite.record_name)
            case Kind.BREAK_GLASS:
                record = cluster.record(composite.record_name)
                name = None if record is None else (record.get("status") or {}).get("xrName")
                if name is not None:
                    self._break_glass(name)
            case Kind.PAUSE_XR if not composite.gone:
                composite.paused = True
                composite.changed()
                await asyncio.sleep(plan.length_s)
                composite.paused = False
                composite.changed()
            case Kind.EDIT:
                composite.labels = {"team": f"team-{self._rng.randint(1, 99)}"}
                composite.changed()
            case Kind.RETRY:
                composite.retry += 1
                composite.changed()


def condition(record: Raw, kind: str) -> dict[str, Any]:
    """Return a condition of a record; empty where it has none."""
    for item in (record.get("status") or {}).get("conditions") or []:
        if item["type"] == kind:
            found: dict[str, Any] = item
            return found
    return {}
