"""Elects a leader by a lease, and leads for as long as it is held.

When a term begins and ends. Source: docs/decisions/0015.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol
from uuid import UUID

from reconciler.domain.guard.lease import Pace
from reconciler.ports.registration import AllocationLostError, StoreUnavailableError
from reconciler.ports.store.lease import FencedError, Lease, LeaseStore

RETRY_S: Final = 0.5
"""Pause after a store that did not answer: several fit into what is left of a term."""
RELEASE_S: Final = 2.0
"""Longest wait to give a lease back; its time ends by itself."""

_PASSING: Final = (StoreUnavailableError, AllocationLostError, FencedError, OSError, TimeoutError)
"""What a leader may end with and stand again."""

_log = logging.getLogger(__name__)


class LeadershipTerm:
    """One holder's time with a lease.

    Args:
        lease: What it holds.
        until: When its time is over unless it is extended, by `clock`.
        clock: Seconds that go on while the process stands still.
    """

    def __init__(self, lease: Lease, *, until: float, clock: Callable[[], float]) -> None:
        self.lease = lease
        self._until = until
        self._clock = clock
        self._ended = False
        self._at_end: list[Callable[[], None]] = []

    def check(self) -> None:
        """Be asked right before an effect that cannot be fenced.

        Raises:
            FencedError: The term is over.
        """
        if self._ended or self.left_s() <= 0:
            raise FencedError(self.lease)

    def left_s(self) -> float:
        """Tell how many seconds are left by the holder's own clock."""
        return self._until - self._clock()

    def extend(self, until: float) -> None:
        """Note that the lease was renewed."""
        self._until = until

    def at_end(self, call: Callable[[], None]) -> None:
        """Have something done at once when the term ends, before the leader is cancelled."""
        self._at_end.append(call)

    def end(self) -> None:
        """End it: `check` refuses from now on. Idempotency: a second call does nothing."""
        self._ended = True
        while self._at_end:
            self._at_end.pop()()


Lead = Callable[[LeadershipTerm], Awaitable[None]]
"""Leads until cancelled."""


class LeaseListener(Protocol):
    """Hears each time that the store tells who leads."""

    def __call__(self, *, by_us: bool) -> None:
        """Hear whether it is this process."""
        ...


def _unheard(*, by_us: bool) -> None:
    """Hear nothing."""


class LeaderElection:
    """Has one process at a time lead.

    Args:
        leases: Where the lease is kept.
        key: What it is a lease on.
        holder: This process and no other, not even one that ran under its number before:
            what the store has it hold it takes again.
        pace: How long a lease lasts.
        clock: Seconds that go on while the process stands still.
        heard: Called each time that the store tells who leads.
    """

    def __init__(
        self,
        leases: LeaseStore,
        *,
        key: UUID,
        holder: str,
        pace: Pace,
        clock: Callable[[], float],
        heard: LeaseListener = _unheard,
    ) -> None:
        self._heard = heard
        self._leases = leases
        self._key = key
        self._holder = holder
        self._pace = pace
        self._clock = clock
        self.standing_by = asyncio.Event()
        """Set once somebody else was seen to lead."""

    async def run(self, lead: Lead) -> None:
        """Stand, lead and stand again until cancelled.

        Raises:
            Exception: What `lead` ended with, unless it may pass.
        """
        while True:
            await self._serve(await self._elected(), lead)
            await asyncio.sleep(RETRY_S)

    async def _elected(self) -> LeadershipTerm:
        while True:
            asked_at = self._clock()
            try:
                lease = await self._leases.acquire(
                    self._key, holder=self._holder, ttl=self._pace.ttl
                )
            except (StoreUnavailableError, AllocationLostError) as error:
                _log.warning("lease_unreachable error=%s", error)
                lease = None
            else:
                self._heard(by_us=lease is not None)
                if lease is None:
                    self.standing_by.set()
            if lease is not None:
                until = asked_at + self._pace.held_for.total_seconds()
                return LeadershipTerm(lease, until=until, clock=self._clock)
            await asyncio.sleep(self._pace.asked_every.total_seconds())

    async def _serve(self, term: LeadershipTerm, lead: Lead) -> None:
        _log.info("term_begins fence=%d", term.lease.fence)
        work = asyncio.ensure_future(lead(term))
        keeping = asyncio.create_task(self._keep(term))
        try:
            await asyncio.wait({work, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First nothing more may begin, and what waits for Postgres is torn off: a controller
            # that is cancelled in a transaction would wait for the answer to its rollback.
            term.end()
            keeping.cancel()
            work.cancel()
            await asyncio.gather(work, keeping, return_exceptions=True)
            await self._give_back(term.lease)
            _log.info("term_ended fence=%d", term.lease.fence)
        if keeping.done() and not keeping.cancelled():
            keeping.result()
        if not work.cancelled() and (error := work.exception()) is not None:
            _judge(error)

    async def _keep(self, term: LeadershipTerm) -> None:
        """Renew until the term is over."""
        pause_s = self._pace.renewed_every.total_seconds()
        while True:
            await asyncio.sleep(min(pause_s, max(0.0, term.left_s())))
            asked_at = self._clock()
            try:
                async with asyncio.timeout(max(0.0, term.left_s())):
                    if not await self._leases.renew(term.lease, ttl=self._pace.ttl):
                        _log.warning("lease_lost fence=%d", term.lease.fence)
                        return
            except (StoreUnavailableError, AllocationLostError, TimeoutError) as error:
                _log.warning("lease_not_renewed error=%r", error)
                pause_s = RETRY_S
            else:
                term.extend(asked_at + self._pace.held_for.total_seconds())
                self._heard(by_us=True)
                pause_s = self._pace.renewed_every.total_seconds()
            if term.left_s() <= 0:
                _log.warning("lease_ran_out fence=%d", term.lease.fence)
                return

    async def _give_back(self, lease: Lease) -> None:
        try:
            async with asyncio.timeout(RELEASE_S):
                await self._leases.release(lease)
        except (StoreUnavailableError, AllocationLostError, TimeoutError) as error:
            _log.info("lease_not_released error=%r", error)


def _judge(error: BaseException) -> None:
    """Raise what a leader ended with, unless standing again may fix it."""
    if not isinstance(error, _PASSING):
        raise error
    _log.warning("term_failed error=%r", error)
