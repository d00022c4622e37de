"""Leases in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.lease import Lease


@dataclass
class InMemoryLeases:
    """`ports.store.lease.LeaseStore` with a clock that stands still.

    Attributes:
        now: Seconds by the store's clock.
        away: Whether nobody can reach it.
        calls: The names of the calls that were made, oldest first.
    """

    now: float = 0.0
    away: bool = False
    held: dict[UUID, tuple[Lease, float]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    async def acquire(self, key: UUID, *, holder: str, ttl: timedelta) -> Lease | None:
        self._reached("acquire")
        before = self.held.get(key)
        if before is not None and before[1] > self.now and before[0].holder != holder:
            return None
        fence = 1 if before is None else before[0].fence + 1
        lease = Lease(key=key, holder=holder, fence=fence)
        self.held[key] = (lease, self.now + ttl.total_seconds())
        return lease

    async def renew(self, lease: Lease, *, ttl: timedelta) -> bool:
        self._reached("renew")
        if self.held[lease.key][0].fence != lease.fence:
            return False
        self.held[lease.key] = (lease, self.now + ttl.total_seconds())
        return True

    async def release(self, lease: Lease) -> None:
        self._reached("release")
        if self.held[lease.key][0].fence == lease.fence:
            self.held[lease.key] = (lease, self.now)

    def _reached(self, call: str) -> None:
        self.calls.append(call)
        if self.away:
            raise StoreUnavailableError
