"""The control plane's view of a node's reachability.

The verdict as a pure function of the last heartbeat and the store's clock. A diagnosis:
nothing is decided by it. Source: contracts §1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

STALE_FROM: Final = timedelta(seconds=90)
"""Three missed heartbeats, which come every 30 s."""
UNREACHABLE_AFTER: Final = timedelta(seconds=300)


class Reachability(StrEnum):
    """The reachability of a node, by its last heartbeat."""

    NEVER_REPORTED = "never_reported"
    HEALTHY = "healthy"
    STALE = "stale"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachabilityVerdict:
    """A node's reachability.

    Attributes:
        state: The verdict.
        last_heartbeat_at: None for exactly as long as the node never reported.
        changed_at: When the verdict became what it is.
    """

    state: Reachability
    last_heartbeat_at: datetime | None
    changed_at: datetime


def judge(
    *, last_heartbeat_at: datetime | None, changed_at: datetime, now: datetime
) -> ReachabilityVerdict:
    """Judge a node's reachability; all three times are of one clock.

    Args:
        last_heartbeat_at: None when no heartbeat was ever accepted.
        changed_at: When the node registered, or became healthy, whichever is later.
        now: The time of the judgement.

    Returns:
        Total: silence of 90 s to 300 s is stale, more is unreachable.
    """
    if last_heartbeat_at is None:
        return ReachabilityVerdict(
            state=Reachability.NEVER_REPORTED, last_heartbeat_at=None, changed_at=changed_at
        )
    silence = now - last_heartbeat_at
    state = Reachability.HEALTHY
    if silence > UNREACHABLE_AFTER:
        state, changed_at = Reachability.UNREACHABLE, last_heartbeat_at + UNREACHABLE_AFTER
    elif silence >= STALE_FROM:
        state, changed_at = Reachability.STALE, last_heartbeat_at + STALE_FROM
    return ReachabilityVerdict(
        state=state, last_heartbeat_at=last_heartbeat_at, changed_at=changed_at
    )
