"""The sweep for orphans, in both directions.

Gathering the findings, twice before they are told. It deletes nothing. One sweep costs a
list of metadata per kind and three statements, and an Event per new finding. Source:
docs/decisions/0016.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from reconciler.app.queue.work_queue import describe, heed_cancellation
from reconciler.domain.teardown.orphans import MarkedObject, Orphan, OrphanFinding, unlisted
from reconciler.ports.cluster.orphans import Kind, MarkedObjects, OrphanLedger, OrphanReporter
from reconciler.ports.cluster.substrates import NotAllowedError

SECOND_LOOK_S: Final = 10.0
"""What is about to be deleted, or to be adopted, is settled by then; a finding that stands is
found again."""

EVENTS_MAX: Final = 100
"""Events of one sweep; the next one tells the rest."""

_log = logging.getLogger(__name__)

Records = Callable[[], Mapping[tuple[str, str], dict[str, Any]]]


class OrphanSweep:
    """Looks for leftovers of one management cluster.

    Args:
        marked: Its objects.
        ledger: Its rows.
        teller: Tells at the object.
        records: Its records, by namespace and name.
        kinds: What its catalogue may compose now.
        second_look_s: How long to wait before findings are believed, in seconds.
    """

    def __init__(
        self,
        marked: MarkedObjects,
        ledger: OrphanLedger,
        reporter: OrphanReporter,
        *,
        records: Records,
        kinds: Callable[[], Iterable[Kind]],
        second_look_s: float = SECOND_LOOK_S,
    ) -> None:
        self._marked = marked
        self._ledger = ledger
        self._reporter = reporter
        self._told: set[Orphan] = set()
        self._tried: Orphan | None = None
        self._records = records
        self._kinds = kinds
        self._second_look_s = second_look_s
        self.standing: Counter[OrphanFinding] | None = None
        """How many of each finding the last sweep left standing; None before the first."""

    async def run(self, interval: timedelta) -> None:
        """Sweep at once and then again after each interval, until cancelled."""
        while True:
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001 - the next sweep tries again
                heed_cancellation(error)
                _log.warning("orphan_sweep_failed error=%s", describe(error))
            await asyncio.sleep(interval.total_seconds())

    async def sweep(self) -> int:
        """Look twice, and tell what both looks found.

        Returns:
            How many findings stand now.

        Idempotency: an unchanged world writes nothing.
        """
        found = await self._look()
        if found:
            await asyncio.sleep(self._second_look_s)
            found &= await self._look()
        for orphan in sorted(await self._ledger.settle(found)):
            _log.warning(
                "orphan_found finding=%s subject=%r detail=%r",
                orphan.finding,
                orphan.subject,
                orphan.detail,
            )
        self.standing = Counter(orphan.finding for orphan in found)
        await self._tell(found)
        return len(found)

    async def _tell(self, found: set[Orphan]) -> None:
        """Record an Event per finding that this process has not told, and that still stands."""
        self._told &= found
        untold = sorted(found - self._told)
        # From behind the last one tried, so that what fails each time keeps nobody else untold.
        start = 0 if self._tried is None else bisect_right(untold, self._tried)
        failures: list[str] = []
        for orphan in (untold[start:] + untold[:start])[:EVENTS_MAX]:
            self._tried = orphan
            try:
                await self._reporter.tell(orphan)
            except Exception as error:  # noqa: BLE001 - a later sweep tells it
                heed_cancellation(error)
                failures.append(describe(error))
                continue
            self._told.add(orphan)
        if failures:
            _log.warning("orphan_events_failed count=%d first=%s", len(failures), failures[0])

    async def _look(self) -> set[Orphan]:
        # Objects before rows: what is listed was accepted before, so that its row is seen.
        found = await self._substrates()
        records = self._records()
        found |= {
            item.orphan
            for item in await self._ledger.expected_records()
            if (item.namespace, item.record) not in records
        }
        return found | set(await self._ledger.left_nodes())

    async def _substrates(self) -> set[Orphan]:
        suspects: list[MarkedObject] = []
        found: set[Orphan] = set()
        for kind in sorted({*self._kinds(), *await self._ledger.kinds()}):
            try:
                listed = await self._marked.list_marked(kind)
            except NotAllowedError:
                found.add(unlisted(*kind))
                continue
            records = self._records()
            suspects += [item for item in listed if (item.namespace, item.record) not in records]
        return found | {item.orphan for item in await self._ledger.unprotected(suspects)}
