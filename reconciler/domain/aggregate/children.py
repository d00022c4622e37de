"""The objects below a substrate, and the explanation when they do not go.

The value that is remembered, whether an object is still it, and the wording. A substrate
that is gone proves nothing of them: its foreground finalizer may have been taken off.
Source: design §5 "Deleted when its children are gone too".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique
from typing import Final

from function.contract import names
from function.contract.conditions import Reason
from function.contract.record import SubstrateReference

CHILDREN_MAX: Final = 200
"""Children remembered of one aggregate, some 30 kB; a node has a handful. What is beyond them,
once those that are gone made room, is held by the substrate's foreground deletion alone."""

DEPTH_MAX: Final = 4
"""Composites below composites that are looked into; published ones nest no deeper than one."""

STUCK_S: Final = 120.0
"""How long a child may be deleted before it counts as stuck: most clouds need less."""

NAMED_MAX: Final = 3
"""Stuck children that a condition names; an operator fixes one after the other."""

_FINALIZERS_MAX: Final = 5


Key = tuple[str, str, str]
"""Group, kind and name: what an object keeps when the version it is served in changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One object that a substrate composed.

    Attributes:
        reference: As listed last, in the aggregate's namespace; its version may change.
        uid: Its uid once it was seen; None before.
    """

    reference: SubstrateReference
    uid: str | None = None


@unique
class ChildPresence(StrEnum):
    """The result of looking for a child that is not known to be gone."""

    THERE = "There"
    UNSERVED = "Unserved"
    FORBIDDEN = "Forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingChild:
    """A child that is not gone, or of which nobody can say so.

    Attributes:
        reference: Which one.
        look: What came of looking for it.
        deleting_since: Its deletionTimestamp; None when nobody deletes it.
        finalizers: What holds it.
    """

    reference: SubstrateReference
    look: ChildPresence = ChildPresence.THERE
    deleting_since: datetime | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the aggregate must wait; what may not be read is left to Crossplane."""
        return self.look is not ChildPresence.FORBIDDEN


def key(reference: SubstrateReference) -> Key:
    """Return what tells a child from others, whatever the version."""
    return names.group_of(reference.api_version), reference.kind, reference.name


def is_same(
    child: Child, *, uid: str, controller_uid: str | None, owners: Collection[str] | None
) -> bool:
    """Tell whether an object under a child's name is that child.

    Args:
        child: What is remembered.
        uid: The object's uid.
        controller_uid: Of whoever controls it; None when nobody does.
        owners: Uids of the substrate and of its children, as seen last; None when the
            substrate was never seen.
    """
    if uid == child.uid:
        return True
    if controller_uid is not None:
        return owners is None or controller_uid in owners
    return child.uid is None


def explain_remaining(
    left: Sequence[RemainingChild], *, now: datetime, waited_s: float
) -> tuple[Reason, str] | None:
    """Say which children hold a deletion up, in words that do not change with time.

    Args:
        left: What is not gone.
        now: The time.
        waited_s: For how long nothing of the aggregate has changed, in seconds.

    Returns:
        Reason and sentence; None while none is stuck.
    """
    unserved = sorted(
        {item.reference.api_version for item in left if item.look is ChildPresence.UNSERVED}
    )
    if unserved:
        message = (
            f"Cannot verify that all composed objects are deleted: {unserved[0]} is not served. "
            "Install its CRD again."
        )
        return Reason.KIND_NOT_SERVED, message
    stuck = [item for item in left if _is_stuck(item, now, waited_s)]
    if stuck:
        return Reason.CHILD_STUCK, _named(sorted(stuck, key=_order))
    forbidden = sorted({_kind(item) for item in left if item.look is ChildPresence.FORBIDDEN})
    if forbidden and waited_s > STUCK_S:
        message = (
            f"The reconciler lacks the right to get {forbidden[0]} and relies on Crossplane to "
            "delete it. Grant it get on that kind."
        )
        return Reason.RIGHTS_MISSING, message
    return None


def _is_stuck(item: RemainingChild, now: datetime, waited_s: float) -> bool:
    if item.look is not ChildPresence.THERE or waited_s <= STUCK_S:
        return False
    since = item.deleting_since
    return since is None or (now - since).total_seconds() > STUCK_S


def _named(stuck: Sequence[RemainingChild]) -> str:
    words = [_words(item) for item in stuck[:NAMED_MAX]]
    more = ["Other objects remain, too."] if len(stuck) > NAMED_MAX else []
    return " ".join([*words, *more])


def _words(item: RemainingChild) -> str:
    what = f"{_kind(item)} {item.reference.name!r}"
    if item.deleting_since is None:
        return f"{what} still exists and is not being deleted; delete it."
    since = item.deleting_since.strftime("%Y-%m-%dT%H:%M:%SZ")
    held = ", ".join(sorted(item.finalizers)[:_FINALIZERS_MAX])
    return f"{what} has been terminating since {since}; finalizers: {held or 'none'}."


def _kind(item: RemainingChild) -> str:
    return f"{item.reference.kind} of {item.reference.api_version}"


def _order(item: RemainingChild) -> tuple[str, str, str]:
    reference = item.reference
    return reference.api_version, reference.kind, reference.name
