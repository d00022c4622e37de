"""Explains an unready substrate by the lowest object that says why.

Which object is told, the wording, how often it is looked for. Pure. Source:
docs/decisions/0021.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from function.contract import redaction
from function.contract.conditions import ObservedCondition, Reason
from function.contract.record import SubstrateReference
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.record.progress import shape

LOOKS_MAX: Final = 24
"""Objects that one look reads; a published blueprint composes five."""

SAID_MAX: Final = 512
"""Characters of a provider's sentence that are told: a cause is named in its first words."""

AGAIN_MIN: Final = timedelta(minutes=1)
AGAIN_MAX: Final = timedelta(minutes=10)
_AGAIN_SHARE: Final = 20
"""One that has been late for t is looked at again every t/20: ten thousand that wait for a cloud
that is away cost less than twenty looks a second once they have waited for hours."""

REFUSALS: Final = ("Synced", "LastAsyncOperation")
"""What a provider says of its last call, and one made by Upjet of a call that ends later."""
_READY: Final = "Ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadyObject:
    """One object of a look.

    Attributes:
        reference: Which one.
        depth: How far below the substrate; the XR above it is at -1.
        conditions: By type; None when it cannot be read.
        served: Whether its kind is there to be read.
    """

    reference: SubstrateReference
    depth: int
    conditions: Mapping[str, ObservedCondition] | None
    served: bool = True


def next_look(late: timedelta) -> timedelta:
    """Return how soon one that has been late for a while is looked at again."""
    return min(AGAIN_MAX, max(AGAIN_MIN, late / _AGAIN_SHARE))


def explain(
    seen: Iterable[UnreadyObject], *, limit: timedelta, exists: bool, ended: bool, before: str = ""
) -> Explanation:
    """Say why a substrate is late.

    Args:
        seen: What was looked at.
        limit: How long it may take.
        exists: Whether it is there.
        ended: Its token can enrol no machine any more.
        before: What was said last: it stays while only numbers and ids in it would change, for
            a provider names each of its calls.
    """
    head, words = _cause(seen)
    what = "exists but is not ready" if exists else "does not exist"
    head = f"The substrate {what} after {_span(limit)}. {head}"
    tail = _ENDED if ended else ""
    message = f"{head}{words}{tail}"
    if before.startswith(head) and shape(before[len(head) :]) == shape(f"{words}{tail}"):
        message = before
    return Explanation(reason=Reason.PROVISIONING_TIMEOUT, message=message)


_ENDED: Final = (
    " Its bootstrap token has ended: fix the cause, then delete its ProvisioningRecord to have it"
    " recreated."
)
_NOTHING: Final = "None of its objects reports a cause."


def _cause(seen: Iterable[UnreadyObject]) -> tuple[str, str]:
    """Return which object is to blame, and its words."""
    blamed = [item for item in seen if not _is_ready(item)]
    if not blamed:
        return _NOTHING, ""
    lowest = min(blamed, key=_rank)
    reference = lowest.reference
    name = f"{reference.kind} {reference.name!r} of {reference.api_version}"
    if lowest.conditions is None:
        missing = (
            "the reconciler lacks the right to get it"
            if lowest.served
            else "its kind is not served"
        )
        return f"{name} may report the cause, but {missing}.", ""
    kind = _telling(lowest.conditions)
    if kind is None:
        return f"{name} reports no condition yet; check that its provider is running.", ""
    said = lowest.conditions[kind]
    words = redaction.provider_message(said.message, longest=SAID_MAX) or "no message."
    reason = redaction.provider_message(said.reason, longest=_REASON_MAX)
    return f"{name}: {kind} is {_status(said)} ({reason}): ", words


_REASON_MAX: Final = 128


def _is_ready(item: UnreadyObject) -> bool:
    found = None if item.conditions is None else item.conditions.get(_READY)
    return found is not None and found.status == "True"


def _rank(item: UnreadyObject) -> tuple[int, int, bool, bool, str, str, str]:
    """A refusal before a delay, what is deep before what waits for it, words before silence."""
    reference, conditions = item.reference, item.conditions
    order = (reference.api_version, reference.kind, reference.name)
    if conditions is None:
        return _UNREADABLE, -item.depth, True, True, *order
    kind = _telling(conditions)
    level = _REFUSED if kind in REFUSALS else _DELAYED
    wordless = kind is None or not conditions[kind].message
    return level, -item.depth, kind is None, wordless, *order


_REFUSED, _DELAYED, _UNREADABLE = 0, 1, 2


def _telling(conditions: Mapping[str, ObservedCondition]) -> str | None:
    """Return the type of the condition that says most; None when none says anything."""
    for kind in REFUSALS:
        if kind in conditions and conditions[kind].status == "False":
            return kind
    return _READY if _READY in conditions else None


def _status(said: ObservedCondition) -> str:
    return said.status if said.status in {"True", "False"} else "Unknown"


def _span(length: timedelta) -> str:
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
