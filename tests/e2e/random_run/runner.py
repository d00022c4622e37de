"""Lives a random run on one real stack: the deeds at their times, and the end.

Two lanes do the deeds, one of them the reconciler's end and start alone, because its start takes
seconds; a third thread only looks. At the end everything is mended, half of the XRs are deleted,
and the others come to what they will be. Every wait has a bound, and what did not come by then is
the judge's to tell.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from dev.stack import Stack
from tests.e2e import runbook
from tests.e2e.random_run.deeds import Deed, Kind, Schedule
from tests.e2e.random_run.evidence import Evidence
from tests.e2e.random_run.ground import Xr, prepare
from tests.e2e.random_run.history import History, Interval
from tests.e2e.random_run.people import Done, People
from tests.e2e.random_run.witness import Witness, is_frozen
from tests.e2e.standby import leads
from tests.e2e.world import Object, condition_of, wait_for

SETTLED_S: Final = 600.0
"""From the last deed until all is what it will be: a machine made anew waits for its node twice, a
minute each, and an XR whose breaker is open is run each half minute."""

REST_S: Final = 300.0
"""From then on until nobody writes any more."""

QUIET_S: Final = 40.0
"""So long nobody writes: longer than a sweep's interval, and than an open breaker's."""

LOOK_S: Final = 2.0
THAW: Final = 'broker thaw --management-cluster local --reason "the random run took them"'


@dataclass
class Run:
    """One run on a stack."""

    stack: Stack
    schedule: Schedule
    report: Callable[[str], None]
    done: list[Done] = field(default_factory=list)
    outages: list[Interval] = field(default_factory=list)

    def live(self) -> History:
        """Live it, and return the evidence."""
        self._xrs = prepare(self.stack, self.schedule.seed)
        self._people = People(self.stack, self._xrs)
        namespaces = sorted({xr.namespace for xr in self._xrs})
        with Witness(self.stack, namespaces) as witness:
            self._evidence = Evidence(self.stack, self._people, witness, namespaces)
            self._deeds()
            parted = self._part()
            self._settle(parted)
            quiet, restless = self._rest()
        return dataclasses.replace(
            self._evidence.gathered(quiet, self.outages),
            parted=frozenset(xr.key for xr in parted),
            orphaned=frozenset(
                self._xrs[done.deed.target].key
                for done in self.done
                if done.deed.kind is Kind.DELETE_ORPHAN and 200 <= done.status <= 299
            ),
            restless=restless,
        )

    def _deeds(self) -> None:
        """Do the deeds of both lanes at their times; the first failure ends both."""
        over = threading.Event()
        begun = time.monotonic()
        lanes = (
            [deed for deed in self.schedule.deeds if deed.kind is not Kind.KILL],
            [deed for deed in self.schedule.deeds if deed.kind is Kind.KILL],
        )
        steps: list[Callable[[Deed], None]] = [self._do, partial(self._kill, over)]
        with ThreadPoolExecutor(max_workers=len(lanes)) as pool:
            running = [
                pool.submit(_in_time, begun, over, lane, step)
                for lane, step in zip(lanes, steps, strict=True)
            ]
            wait(running, return_when=FIRST_EXCEPTION)
            over.set()
        for lane_done in running:
            lane_done.result()

    def _do(self, deed: Deed) -> None:
        done = self._people.do(deed)
        self.done.append(done)
        self.report(str(done))

    def _kill(self, over: threading.Event, deed: Deed) -> None:
        """Kill the reconciler, and start it again after a while; until it leads nobody acts."""
        self.report(f"{deed} for {deed.length_s:.1f} s")
        begun = datetime.now(UTC)
        self.stack.kill_reconciler()
        over.wait(deed.length_s)
        child = self.stack.start_reconciler()
        wait_for(partial(leads, self.stack, child), "the lead of the one that was started")
        self.outages.append(Interval(begun=begun, ended=datetime.now(UTC)))

    def _part(self) -> list[Xr]:
        """Return the XRs that will not be: those that are not there, and half of the others."""
        there = [xr for xr in self._xrs if _is_wanted(self._found(xr))]
        stay = [xr for xr in there if xr.number not in self.schedule.parting]
        self.report(f"stay: {[xr.number for xr in stay]} of {[xr.number for xr in there]}")
        return [xr for xr in self._xrs if xr not in stay]

    def _settle(self, parted: list[Xr]) -> None:
        """Mend what goes wrong, have go what is to go, and wait until all is what it will be."""
        deadline = time.monotonic() + SETTLED_S
        pause = threading.Event()
        stay = [xr for xr in self._xrs if xr not in parted]
        while time.monotonic() < deadline:
            self._people.mend()
            if is_frozen(self.stack):
                runbook.run(self.stack, THAW, {})
            going = [xr for xr in parted if self._is_there(xr)]
            for xr in going:
                found = self._found(xr)
                if found is None or "deletionTimestamp" not in found["metadata"]:
                    self._people.part(xr, ("Background", "Foreground")[xr.number % 2])
            if not going and all(map(self._is_settled, stay)):
                break
            pause.wait(LOOK_S)
        self.report("settled" if time.monotonic() < deadline else "not settled in time")

    def _rest(self) -> tuple[Interval, list[str]]:
        """Wait until nothing has changed for a while; return the while, and what did all the same.

        Crossplane applies all that it composes once a minute, which changes nothing; so what counts
        is the objects' versions.
        """
        deadline = time.monotonic() + REST_S
        pause = threading.Event()
        since, before = datetime.now(UTC), self._evidence.versions()
        last: list[str] = []
        while True:
            pause.wait(LOOK_S)
            now, versions = datetime.now(UTC), self._evidence.versions()
            changed = [title for title, version in versions if (title, version) not in before]
            changed += sorted({title for title, _ in before} - {title for title, _ in versions})
            last = changed or last
            if time.monotonic() > deadline:
                self.report("never at rest")
                return Interval(begun=since, ended=now), last
            if now - since > timedelta(seconds=QUIET_S) and not changed:
                self.report("at rest")
                return Interval(begun=since, ended=now), []
            if changed:
                self.report(f"not at rest: {changed}")
                since, before = now, versions

    def _found(self, xr: Xr) -> Object | None:
        answer = self._people.git.get(xr.path)
        return answer.body if answer.ok else None

    def _is_there(self, xr: Xr) -> bool:
        return self._found(xr) is not None or bool(self._people.records(xr))

    def _is_settled(self, xr: Xr) -> bool:
        found, records = self._found(xr), self._people.records(xr)
        if found is None:
            return False
        ready = condition_of(found, "Ready").get("status") == "True"
        came = [condition_of(one, "Ready").get("status") == "True" for one in records]
        ended = [condition_of(one, "Stalled").get("status") == "True" for one in records]
        whole = all(one or other for one, other in zip(came, ended, strict=True))
        return whole and (ready if all(came) else not ready)


def _in_time(
    begun: float, over: threading.Event, deeds: list[Deed], do: Callable[[Deed], None]
) -> None:
    """Do some deeds at their times, until all are done or the run is over."""
    for deed in deeds:
        if over.wait(max(0.0, begun + deed.at_s - time.monotonic())):
            return
        do(deed)


def _is_wanted(found: Object | None) -> bool:
    return found is not None and "deletionTimestamp" not in found["metadata"]
