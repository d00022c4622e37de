"""The lease on driving a management cluster: one holder at a time, and its fencing token.

What `app.controller.leader_election` calls and what a write that comes too late raises.
Source: docs/decisions/0015.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease that was taken.

    Attributes:
        key: What it is a lease on: a management cluster's id.
        holder: The process that took it, and no other.
        fence: Counts the takeovers of this key, from 1. Every write of the holder names it, and
            none commits once it was counted up.
    """

    key: UUID
    holder: str
    fence: int


class FencedError(Exception):
    """Somebody else took the lease over; nothing was written."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(f"cannot write: lease term {lease.fence} of {lease.holder} has ended")


class LeaseStore(Protocol):
    """The store of leases; the store's clock decides.

    Every call may raise:
        StoreUnavailableError: The store cannot be reached now.
    """

    async def acquire(self, key: UUID, *, holder: str, ttl: timedelta) -> Lease | None:
        """Take a lease that nobody else holds; None while somebody else does.

        One whose time is over is anybody's, and its own the holder takes again. Waits for the
        writes that the former holder has under way.

        Idempotency: none; each success counts the fence up.
        """
        ...

    async def renew(self, lease: Lease, *, ttl: timedelta) -> bool:
        """Let a lease's time start again; False when somebody else took it over.

        One whose time is over is renewed as long as nobody took it.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """End a lease's time now. Idempotency: somebody else's stays as it is."""
        ...
