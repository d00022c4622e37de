"""Merges the conditions of several nodes into those of their XR.

Joining their conditions, readiness and times to live. An XR has one condition of a type, so
the one worth reading speaks first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from function.compose.status.conditions import MESSAGE_MAX
from function.compose.status.progress import stopped
from function.contract import conditions
from function.contract.conditions import ConditionType, DesiredCondition, Reason
from function.model.call import Answer, ComposedNode, Notice, Outcome, Ttl
from function.model.objects import Raw

_SOONEST: Final = (Ttl.WAITING, Ttl.CUT_OFF, Ttl.REFUSED, Ttl.STEADY)
_RESPONSIVE: Final = "Responsive"
"""Crossplane's condition: False while the XR's breaker is open; it is set before each run."""
_ALARMS: Final = frozenset(
    {ConditionType.PROVISIONING_FAILED, ConditionType.STALLED, ConditionType.RECONCILING}
)
"""The conditions of which True is the one to read."""
_RELEASES: Final = frozenset({Reason.FORCE_RELEASED, Reason.RECREATING})
"""What is said of a node that is given up, or whose machine is replaced."""


def merged(outcomes: Mapping[str, Outcome]) -> tuple[DesiredCondition, ...]:
    """Return one condition of each type over all resources, worst first, naming its resource.

    A standalone resource, of which nothing is expected, does not speak for others. Where no
    resource is there, that is said: what an earlier run said would stand for ever.
    """
    if not outcomes:
        return _NOBODY
    if len(outcomes) == 1:
        # Nobody else speaks of the same.
        return next(iter(outcomes.values())).verdicts
    # Every outcome gives the same types in one order.
    by_type = zip(*(outcome.verdicts for outcome in outcomes.values()), strict=True)
    return _settled(tuple(_joined([*outcomes], said) for said in by_type))


def _settled(said: tuple[DesiredCondition, ...]) -> tuple[DesiredCondition, ...]:
    """Return conditions of which `Reconciling` is False where one resource is stalled.

    kstatus takes the first of the two that is True, and the one that somebody must act on counts.
    """
    stalled = next(one for one in said if one.type is ConditionType.STALLED)
    return _replaced(said, stopped(stalled.reason, stalled.message)) if stalled.status else said


def _replaced(
    said: tuple[DesiredCondition, ...], others: Iterable[DesiredCondition]
) -> tuple[DesiredCondition, ...]:
    by_type = {one.type: one for one in others}
    return tuple(by_type.get(one.type, one) for one in said)


_NOTHING: Final = "the Enrol step matches no resource"
_NOBODY: Final = tuple(
    DesiredCondition(type=kind, status=status, reason=reason, message=_NOTHING)
    for kind, status, reason in (
        (ConditionType.ADMITTED, True, Reason.NOT_EXPECTED),
        (ConditionType.BOOTSTRAP_INJECTED, False, Reason.NOT_EXPECTED),
        (ConditionType.NODE_REGISTERED, False, Reason.NOT_EXPECTED),
        (ConditionType.PROVISIONING_FAILED, False, Reason.NOT_FAILED),
        (ConditionType.CLOUD_TAGS_COMPLETE, True, Reason.COMPLETE),
        (ConditionType.STALLED, False, Reason.NOT_EXPECTED),
        (ConditionType.RECONCILING, False, Reason.NOT_EXPECTED),
    )
)


def refused(
    said: tuple[DesiredCondition, ...], outcomes: Iterable[Outcome], text: str
) -> tuple[DesiredCondition, ...]:
    """Return an XR's conditions with why its step is refused, before what a resource says.

    Args:
        said: The merged conditions.
        outcomes: Of its resources.
        text: What is wrong, with room for a count behind it.
    """
    kind = ConditionType.ADMITTED
    verdicts = (one for outcome in outcomes for one in outcome.verdicts if one.type is kind)
    message = text + _others(sum(_rank(one) != _GOOD for one in verdicts))
    refusal = DesiredCondition(
        type=kind, status=False, reason=Reason.RESOURCE_NOT_FOUND, message=message
    )
    return _replaced(said, (refusal, *stopped(refusal.reason, refusal.message)))


def noted(said: tuple[DesiredCondition, ...], text: str) -> tuple[DesiredCondition, ...]:
    """Return an XR's conditions with a remark behind what is said of its admission."""

    def with_note(verdict: DesiredCondition) -> DesiredCondition:
        note = f"; {text}"
        return replace(verdict, message=verdict.message[: MESSAGE_MAX - len(note)] + note)

    return tuple(with_note(one) if one.type is ConditionType.ADMITTED else one for one in said)


def ttl(told: Raw, ttls: Iterable[Ttl]) -> Ttl:
    """Return the shortest time that any of them holds.

    Args:
        told: The observed composite's status; while its breaker is open, none holds long.
        ttls: Of its resources and of their step.
    """
    given = set(ttls)
    responsive = conditions.find(told, _RESPONSIVE)
    if responsive is not None and responsive.status == "False":
        given.add(Ttl.CUT_OFF)
    return next((one for one in _SOONEST if one in given), Ttl.STEADY)


def notices(told: Raw, said: Iterable[DesiredCondition]) -> tuple[Notice, ...]:
    """Return the warnings that the XR's conditions do not tell already.

    A label that is no cloud tag, what somebody has to act on, and a node that is given up.

    Idempotency: once the condition is on the XR, nothing more is said.
    """
    return tuple(
        Notice(reason=verdict.reason, message=_OTHERS.sub("", verdict.message))
        for verdict in said
        if _warns(verdict) and not _is_told(told, verdict)
    )


def unstalled(said: Iterable[DesiredCondition]) -> tuple[DesiredCondition, ...]:
    """Return conditions without `Stalled`, whose notice is somebody else's."""
    return tuple(one for one in said if one.type is not ConditionType.STALLED)


def _warns(verdict: DesiredCondition) -> bool:
    if verdict.type is ConditionType.CLOUD_TAGS_COMPLETE:
        return verdict.status is False
    if verdict.type is ConditionType.NODE_REGISTERED:
        return verdict.reason in _RELEASES
    return verdict.type is ConditionType.STALLED and verdict.status is True


def refusals(told: Raw, text: str) -> tuple[Notice, ...]:
    """Return the warning of why a step is refused, unless the XR's condition begins with it.

    Idempotency: as `notices`; what the condition counts behind it changes with the others.
    """
    found = conditions.find(told, ConditionType.ADMITTED)
    reason = Reason.RESOURCE_NOT_FOUND
    if found is not None and found.reason == reason and found.message.startswith(text):
        return ()
    return (Notice(reason=reason, message=text),)


def single(told: Raw, node: ComposedNode) -> Answer:
    """Return the answer of an input that composes one substrate and its record.

    Args:
        told: The observed composite's status.
        node: Its composed objects and its outcome.
    """
    outcome = node.outcome
    return Answer(
        resources=node.resources,
        ready=outcome.ready,
        verdicts=outcome.verdicts,
        status=outcome.status,
        ttl=ttl(told, [outcome.ttl]),
        requirements=outcome.requirements,
        notices=notices(told, outcome.verdicts),
    )


def _joined(names: list[str], said: tuple[DesiredCondition, ...]) -> DesiredCondition:
    spoken = [place for place, one in enumerate(said) if one.reason != Reason.NOT_EXPECTED]
    expected = spoken or range(len(said))
    ranks = [_rank(said[place]) for place in expected]
    worst = min(ranks)
    place = expected[ranks.index(worst)]
    name, verdict = names[place], said[place]
    if worst == _GOOD:
        return verdict
    others = _others(len(ranks) - ranks.count(_GOOD) - 1)
    message = f"{name}: {verdict.message}"[: MESSAGE_MAX - len(others)]
    return replace(verdict, message=f"{message}{others}")


_OTHERS: Final = re.compile(r"; \d+ more of its resources are affected$")
"""What `_others` says; it changes with every further resource, and is no news by itself."""


def _others(alike: int) -> str:
    return f"; {alike} more of its resources are affected" if alike else ""


_GOOD: Final = 2


def _rank(verdict: DesiredCondition) -> int:
    if verdict.status is None:
        return 1
    good = verdict.status is not (verdict.type in _ALARMS)
    return _GOOD if good else 0


def _is_told(told: Raw, verdict: DesiredCondition) -> bool:
    found = conditions.find(told, verdict.type)
    if found is None or found.reason != verdict.reason:
        return False
    return _OTHERS.sub("", found.message) == _OTHERS.sub("", verdict.message)
