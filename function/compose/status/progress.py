"""Says on the XR whether anything is under way, and whether somebody has to act.

`Stalled` and `Reconciling` as kstatus reads them (cli-utils, pkg/kstatus): a refusal, a terminal
failure and a timeout are Failed, and InProgress is only what goes on by itself. The record has
the same conditions from the reconciler; of a record that goes they are what counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from function.contract.conditions import ConditionType, DesiredCondition, ObservedCondition, Reason
from function.contract.errors import ContractError
from function.contract.strategy import Phase

_PASSING: Final = frozenset(
    {
        Reason.BLUEPRINT_NOT_FOUND,
        Reason.NAMESPACE_NOT_READY,
        Reason.WAITING_FOR_CROSSPLANE,
        Reason.WAITING_FOR_RECONCILER,
        Reason.WAITING_FOR_TOKEN,
    }
)
"""Why no bootstrap is made, or nothing is admitted, for a while only."""

_AWAITED: Final = (Reason.WAITING_FOR_RECONCILER, "waiting for the reconciler")
_AT_REST: Final = (Phase.READY.value, "the reconcile is complete")

_STATUS: Final = {"True": True, "False": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressFacts:
    """What both follow from.

    Attributes:
        admitted: The XR's `Admitted`.
        failed: Its `ProvisioningFailed`.
        stalled: The record's own; None before its first status.
        reconciling: Likewise.
        phase: The record's; None before its first status.
        withheld: Why no bootstrap could be made; None where one was, or none is due.
        going: The node is drained or torn down, whatever its declaration says.
        preview: Nothing is reconciled.
    """

    admitted: DesiredCondition
    failed: DesiredCondition
    stalled: ObservedCondition | None
    reconciling: ObservedCondition | None
    phase: Phase | None
    withheld: ContractError | None
    going: bool
    preview: bool


def progress(facts: ProgressFacts) -> tuple[DesiredCondition, DesiredCondition]:
    """Return `Stalled` and `Reconciling`."""
    obstacle = _obstacle(facts)
    if obstacle is not None:
        return stopped(*obstacle)
    if facts.preview:
        return _moving(status=False, reason=Reason.PREVIEW, message="nothing is reconciled")
    admitted, told = facts.admitted, facts.reconciling
    if admitted.status is None:
        return _moving(status=True, reason=admitted.reason, message=admitted.message)
    if told is None:
        rests = facts.phase is Phase.READY
        reason, message = _AT_REST if rests else _AWAITED
        return _moving(status=not rests, reason=reason, message=message)
    return _moving(status=_STATUS.get(told.status), reason=told.reason, message=told.message)


def _obstacle(facts: ProgressFacts) -> tuple[str, str] | None:
    """Return reason and message of what waits for somebody; None where nothing does."""
    admitted, failed, withheld = facts.admitted, facts.failed, facts.withheld
    lives = not facts.going
    if lives and admitted.status is False and _lasts(admitted.reason):
        return admitted.reason, admitted.message
    if lives and withheld is not None and withheld.reason not in _PASSING:
        return withheld.reason, str(withheld)
    # Before the substrate's own failure: the record's words stay while request ids change.
    if facts.stalled is not None and facts.stalled.status == "True":
        return facts.stalled.reason, facts.stalled.message
    return (failed.reason, failed.message) if lives and failed.status else None


def _lasts(reason: str) -> bool:
    """Tell whether a refusal waits for somebody; a Project's namespace converges by itself."""
    return reason != Reason.NAMESPACE_NOT_READY


def stopped(reason: str, message: str) -> tuple[DesiredCondition, DesiredCondition]:
    """Return both where somebody has to act; each says why, as printer columns show one."""
    return (
        DesiredCondition(type=ConditionType.STALLED, status=True, reason=reason, message=message),
        DesiredCondition(
            type=ConditionType.RECONCILING, status=False, reason=reason, message=message
        ),
    )


def _moving(
    *, status: bool | None, reason: str, message: str
) -> tuple[DesiredCondition, DesiredCondition]:
    return (
        DesiredCondition(
            type=ConditionType.STALLED,
            status=False,
            reason=Reason.PROGRESSING,
            message="nothing is stalled",
        ),
        DesiredCondition(
            type=ConditionType.RECONCILING, status=status, reason=reason, message=message
        ),
    )
