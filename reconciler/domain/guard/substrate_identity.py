"""Decides whether a substrate is still the one that its node came from.

Theory of operation: a pipeline run in flight makes a substrate again that somebody deleted, under
the same name and with a bootstrap that was used. The node is not on it, and never will be. So once
a node is in the mesh the substrate's uid is remembered, and another one under its name counts
like none. A record may lag behind, or be restored from a backup with an old word on it: nothing
is remembered or accused on its claim alone, only where a live GET agrees. Without a node any uid
is right, and what was remembered is forgotten.

That decision, total over what is known. Pure. Source: design §2 "A lost cluster";
docs/decisions/0018.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class IdentityMatch(StrEnum):
    """The verdict on a substrate's identity."""

    LEAVE = "leave"
    """Nothing: it is the one, or nobody can say."""

    LOOK = "look"
    """Ask the API server; after that it is never the answer again."""

    REMEMBER = "remember"
    FORGET = "forget"
    OTHER = "other"
    """Another object stands under its name."""

    GONE = "gone"
    """It went; what the record shows is not there either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstrateIdentity:
    """The known identity of a substrate that its record reports as existing.

    Attributes:
        registered: Its node is in the mesh.
        known: The uid that is remembered; None while none is.
        shown: The uid that its record shows; None when it shows none.
        looked: A live GET was made.
        live: The uid that it found; None when it found nothing, or none was made.
    """

    registered: bool
    known: str | None
    shown: str | None
    looked: bool = False
    live: str | None = None


def judge(identity: SubstrateIdentity) -> IdentityMatch:
    """Return what follows. Total: every combination has an answer."""
    if not identity.registered:
        return IdentityMatch.LEAVE if identity.known is None else IdentityMatch.FORGET
    if not identity.looked:
        told = identity.shown not in (None, identity.known)
        return IdentityMatch.LOOK if told else IdentityMatch.LEAVE
    if identity.known is None:
        agreed = identity.live is not None and identity.live == identity.shown
        return IdentityMatch.REMEMBER if agreed else IdentityMatch.LEAVE
    if identity.live is None:
        return IdentityMatch.GONE
    return IdentityMatch.LEAVE if identity.live == identity.known else IdentityMatch.OTHER
