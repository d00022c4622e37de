"""Enqueues every aggregate once in a while, and at once those whose change was missed.

Comparing what the caches hold with what the store knows, page by page, and what may rest
because nothing about it changed since it was looked at. A sweep of ten thousand settled
records reads one page after the other and reconciles a twentieth of them; its longest step
without yielding is one page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.queue.keys import (
    AggregateKey,
    CredentialKey,
    Key,
    NamespaceKey,
    RecordKey,
    SiblingsKey,
)
from reconciler.domain.aggregate import ids
from reconciler.ports.store.census import PAGE, Census, RecordEntry

FULL_PASS: Final = 20
"""Sweeps within which each record is looked at even if nothing about it changed: ten minutes."""

PORTION: Final = 16
PAUSE_S: Final = 0.25
PAUSES_MAX: Final = 80
"""A gentle sweep asks for so many at once, and pauses: 64 keys a second take some fifth of a
processor, and a twentieth of ten thousand records a third of the interval. Where more are due, more
are asked for at once, so that all are within 20 s."""

IN_TURN: Final = 100
"""Credentials, and Projects, of one sweep, some calls each; the next sweep has the rest."""


class RecordFingerprint(NamedTuple):
    """The inputs of a reconcile that a sweep can compare."""

    record: str
    row: int
    node: UUID | None


class Sweep:
    """Compares caches and store.

    Memory is one small entry per record.
    """

    def __init__(
        self,
        view: ClusterView,
        census: Census,
        cluster_id: ids.ManagementClusterID,
    ) -> None:
        self._view = view
        self._census = census
        self._cluster_id = cluster_id
        self._breaker = view.breaker
        self._number = 0
        self._asked: dict[RecordKey, RecordFingerprint] = {}
        self._settled: dict[RecordKey, RecordFingerprint] = {}
        self._turn = 0
        self._emptied: set[str] | None = None

    @property
    def settled(self) -> int:
        """How many records rest: nothing about them changed since they were worked off."""
        return len(self._settled)

    def worked_off(self, key: RecordKey, *, resting: bool) -> None:
        """Note that a record's reconcile ended well, and whether it waits for a change alone."""
        print_ = self._asked.pop(key, None)
        if print_ is not None and resting:
            self._settled[key] = print_

    async def keys(self, *, loose: Sequence[tuple[str, str]]) -> AsyncIterator[Key]:
        """Yield what is to be looked at.

        Args:
            loose: Namespace and name of credentials that something is held for and nobody uses.
        """
        self._number += 1
        known: set[RecordKey] = set()
        missing: list[RecordEntry] = []
        used: set[CredentialKey] = set()
        namespaces: set[str] = set()
        async for seen in self._sightings():
            namespaces.add(seen.namespace)
            key = RecordKey(namespace=seen.namespace, name=seen.record)
            if seen.credential is not None:
                used.add(CredentialKey(namespace=seen.namespace, credential=seen.credential))
            if (key.namespace, key.name) not in self._view.records():
                missing.append(seen)
                continue
            known.add(key)
            if self._due(key, seen):
                yield key
            if seen.asked and not self._going(key):
                # Perhaps a successor's, which knows nothing of what goes.
                yield AggregateKey(id=str(seen.id), namespace=seen.namespace)
        for key in await self._strangers(known):
            yield key
        namespaces |= await self._left_empty(loose)
        shared: list[Key] = [*self.in_turn(used, loose), *self._without_project(namespaces)]
        for place in shared:
            yield place
        for each in await self._census.unsettled(self._cluster_id):
            yield SiblingsKey(id=str(each))
        for gone in self._believable(missing, known=len(known)):
            yield gone
        self._forget(known)

    async def _left_empty(self, loose: Sequence[tuple[str, str]]) -> set[str]:
        """Return once each namespace that a process before this one may have left held.

        Where what is held for a credential is still to be released, that takes our rights there,
        which go with the namespace's hold: it is a later sweep's.
        """
        if self._emptied is None:
            self._emptied = set(await self._census.emptied(self._cluster_id))
        due = self._emptied - {namespace for namespace, _ in loose}
        self._emptied -= due
        return due

    def _without_project(self, namespaces: set[str]) -> list[NamespaceKey]:
        """Return those that no Project's own look settles."""
        projects = self._view.projects().values()
        known = {str((raw.get("status") or {}).get("namespace", "")) for raw in projects}
        return [NamespaceKey(namespace=each) for each in sorted(namespaces - known)]

    async def _sightings(self) -> AsyncIterator[RecordEntry]:
        after: RecordEntry | None = None
        while True:
            page = await self._census.sightings(self._cluster_id, after=after)
            for seen in page:
                yield seen
            if len(page) < PAGE:
                return
            after = page[-1]

    def _due(self, key: RecordKey, seen: RecordEntry) -> bool:
        version = self._view.version(key)
        now = RecordFingerprint(record=version, row=seen.version, node=seen.node)
        turn = seen.id.int % FULL_PASS == self._number % FULL_PASS
        # One that waits for its node is driven by time, too.
        rests = bool(version) and not seen.asked and (seen.node or not seen.expects_node)
        if rests and not turn and self._settled.get(key) == now:
            return False
        self._settled.pop(key, None)
        if rests:
            self._asked[key] = now
        return True

    def _going(self, key: RecordKey) -> bool:
        raw = self._view.records().get((key.namespace, key.name))
        return raw is not None and "deletionTimestamp" in raw["metadata"]

    async def _strangers(self, known: set[RecordKey]) -> list[RecordKey]:
        """Return records without an aggregate: refused ones, and those not looked at yet."""
        found: list[RecordKey] = []
        for number, (namespace, name) in enumerate(list(self._view.records()), start=1):
            key = RecordKey(namespace=namespace, name=name)
            if key not in known:
                found.append(key)
            if number % PAGE == 0:
                await asyncio.sleep(0)
        return found

    def in_turn(
        self, used: set[CredentialKey], loose: Sequence[tuple[str, str]]
    ) -> list[CredentialKey]:
        """Return what is loose, and so many of what is used.

        The Secret of one that is used may have come, or lost its hold.
        """
        due = [CredentialKey(namespace=where, credential=name) for where, name in loose]
        turns = sorted(used, key=lambda key: (key.namespace, key.credential))
        start = self._turn if self._turn < len(turns) else 0
        self._turn = start + IN_TURN
        return due + [key for key in islice(turns, start, self._turn) if key not in due]

    def _believable(self, missing: Sequence[RecordEntry], *, known: int) -> list[AggregateKey]:
        """Note what is missing, judge, and return what may be looked at one by one.

        Nothing is believed that vanished in numbers: that is a lost cluster, not a deletion.
        """
        unasked = {seen.id for seen in missing if not seen.asked}
        self._breaker.missing.only(unasked)
        for each in unasked:
            self._breaker.missing.missed(each)
        self._breaker.aggregates = known + len(missing)
        frozen = self._breaker.judge()
        return [
            AggregateKey(id=str(seen.id), namespace=seen.namespace)
            for seen in missing
            if seen.asked or not frozen
        ]

    def _forget(self, known: set[RecordKey]) -> None:
        for prints in (self._asked, self._settled):
            for key in [key for key in prints if key not in known]:
                del prints[key]


async def pause(asked: int, *, of: int, gently: bool) -> None:
    """Let others have a turn after each portion, and gently, let it be worked off meanwhile."""
    if asked % max(PORTION, of // PAUSES_MAX) == 0:
        await asyncio.sleep(PAUSE_S if gently else 0)
