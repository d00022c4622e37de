"""Says on the XR whether anything is under way, and whether somebody has to act.

`Stalled` and `Reconciling` as kstatus reads them (cli-utils, pkg/kstatus): a refusal, a terminal
failure and a timeout are Failed, and InProgress is only what goes on by itself. The record has
the same conditions from the reconciler; of a record that goes they are what counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from function.contract.conditions import ConditionType, DesiredCondition, ObservedCondition, Reason
from function.contract.strategy import Phase

_ALARMS: Final = (
    (ConditionType.ADMITTED, False),
    (ConditionType.PROVISIONING_FAILED, True),
)
"""The conditions, and their statuses, after which nothing goes on by itself."""

_PASSING: Final = frozenset({Reason.NAMESPACE_NOT_READY})
"""Refusals that the reconciler itself ends: a Project's namespace converges."""

_AWAITED: Final = (Reason.WAITING_FOR_RECONCILER, "waiting for the reconciler")
_AT_REST: Final = (Phase.READY.value, "the reconcile is complete")

_STATUS: Final = {"True": True, "False": False}


def progress(
    judged: Iterable[DesiredCondition],
    *,
    stalled: ObservedCondition | None,
    reconciling: ObservedCondition | None,
    phase: Phase | None,
    going: bool,
    preview: bool,
) -> tuple[DesiredCondition, DesiredCondition]:
    """Return `Stalled` and `Reconciling`.

    Args:
        judged: The node's other conditions.
        stalled: The record's own; None before its first status.
        reconciling: Likewise.
        phase: The record's; None before its first status.
        going: The record is being torn down, whatever its declaration says.
        preview: Nothing is reconciled.
    """
    by_type = {one.type: one for one in judged}
    alarms = (by_type[kind] for kind, status in _ALARMS if by_type[kind].status is status)
    alarm = next((one for one in alarms if one.reason not in _PASSING), None)
    if alarm is not None and not going:
        return stopped(alarm.reason, alarm.message)
    if stalled is not None and stalled.status == "True":
        return stopped(stalled.reason, stalled.message)
    if preview:
        return _moving(status=False, reason=Reason.PREVIEW, message="nothing is reconciled")
    admitted = by_type[ConditionType.ADMITTED]
    if admitted.status is None:
        return _moving(status=True, reason=admitted.reason, message=admitted.message)
    if reconciling is None:
        reason, message = _AWAITED if phase is not Phase.READY else _AT_REST
        return _moving(status=phase is not Phase.READY, reason=reason, message=message)
    status = _STATUS.get(reconciling.status)
    return _moving(status=status, reason=reconciling.reason, message=reconciling.message)


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
