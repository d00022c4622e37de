"""Renders a record's status.

The composition of the status document, with transition times kept while a condition's
status stays the same. Source: kinds.md, "What the function composes"; Kubernetes API
conventions, "Conditions".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from function.contract.conditions import ConditionType, DesiredCondition, Reason, find
from function.contract.record import (
    Bootstrap,
    ProviderConfigReference,
    RecordStatus,
    SecretRef,
    wire,
)
from function.contract.strategy import Phase, SubstrateState
from reconciler.domain.record.conditions import StatusFacts, conditions_of


def render(
    previous: Mapping[str, Any], facts: StatusFacts, *, generation: int, now: datetime
) -> dict[str, Any]:
    """Return the status to write; equal to the previous one when nothing changed.

    Args:
        previous: The status as last written; only transition times are taken from it, and all
            that it tells where the resource lives elsewhere: it is there still.
        facts: What this reconcile knows.
        generation: The record's generation, for `observedGeneration`.
        now: The time of transitions that happen in this reconcile.
    """
    resource = facts.resource
    refusal = facts.refusal
    elsewhere = refusal is not None and refusal.reason == Reason.LIVES_ELSEWHERE
    body: dict[str, Any] = {**previous} if elsewhere else {}
    if resource is None and facts.substrate_absent:
        body["substrate"] = SubstrateState.ABSENT.value
    if resource is not None:
        secret = SecretRef(name=facts.secret_name) if facts.secret_name else None
        config = facts.provider_config
        model = RecordStatus(
            phase=resource.phase,
            provisioned_resource_id=str(resource.id),
            xr_name=resource.xr_name,
            accepted=resource.accepted,
            substrate=SubstrateState.ABSENT if facts.substrate_absent else SubstrateState.PRESENT,
            provider_config_ref=None if config is None else ProviderConfigReference(name=config),
            enrolment=facts.enrolment,
            bootstrap=Bootstrap(
                secret_ref=secret, generation=resource.generation, state=facts.bootstrap
            ),
            node=facts.node,
        )
        body = wire(model)
    body["conditions"] = [
        condition(previous, verdict, generation=generation, now=now)
        for verdict in conditions_of(facts)
    ]
    return body


def may_wait(previous: Mapping[str, Any], rendered: Mapping[str, Any]) -> bool:
    """Tell whether a status says nothing that the function or an operator must know at once.

    On its way from a substrate to a node a record passes phases within seconds, and each
    write costs its XR two tokens of Crossplane's breaker, which all resources of one XR
    share. True only where nothing but that way is told.
    """
    moves = previous.get("phase") in _ON_ITS_WAY and rendered.get("phase") in _WITH_SUBSTRATE
    same = all(previous.get(name) == rendered.get(name) for name in ("accepted", "substrate"))
    return moves and same and _grave(previous) == _grave(rendered)


_WITH_SUBSTRATE: Final = (Phase.PROVISIONING.value, Phase.ENROLLING.value)
_ON_ITS_WAY: Final = (Phase.PENDING.value, *_WITH_SUBSTRATE)
_GRAVE: Final = (ConditionType.ADMITTED, ConditionType.STALLED, ConditionType.ORPHANED)


def _grave(document: Mapping[str, Any]) -> list[tuple[str, str] | None]:
    found = (find(document, kind) for kind in _GRAVE)
    return [None if item is None else (item.status, item.reason) for item in found]


def condition(
    previous: Mapping[str, Any], verdict: DesiredCondition, *, generation: int, now: datetime
) -> dict[str, Any]:
    """Return a verdict as a condition, with its transition time kept while it stays.

    Args:
        previous: The status as last written.
        verdict: What the condition is to say.
        generation: For `observedGeneration`.
        now: The time of a transition that happens now.
    """
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    for item in previous.get("conditions") or []:
        if item.get("type") == verdict.type and item.get("status") == verdict.status_text:
            since = item.get("lastTransitionTime", since)
    return {
        "type": verdict.type.value,
        "status": verdict.status_text,
        "reason": str(verdict.reason),
        "message": verdict.message,
        "lastTransitionTime": since,
        "observedGeneration": generation,
    }
