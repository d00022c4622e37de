"""The status document: stable while nothing changes, complete in every situation."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from function.contract.conditions import ConditionType, is_true
from function.contract.record import RecordStatus
from function.contract.strategy import Phase
from reconciler.domain.broker import phase as phases
from reconciler.domain.broker.status import render
from reconciler.domain.broker.verdicts import StatusFacts, Why, verdicts
from tests.unit.reconciler.samples import NOW, resource

WHY = Why(reason="Because", message="A reason.")
ALL_TYPES = {
    ConditionType.READY,
    ConditionType.RECONCILING,
    ConditionType.STALLED,
    ConditionType.ADMITTED,
    ConditionType.NODE_REGISTERED,
    ConditionType.SUBSTRATE_DELETED,
    ConditionType.ORPHANED,
}


def _aggregate(phase: Phase | None):  # type: ignore[no-untyped-def]  # a fixture-like helper
    if phase is None:
        return None
    requested = NOW if phases.is_teardown(phase) else None
    return resource(phase=phase, deletion_requested_at=requested)


EVERYTHING = [
    StatusFacts(
        resource=_aggregate(phase),
        refusal=refusal,
        refusal_is_final=final,
        waiting=waiting,
        stall=stall,
        orphaned=orphaned,
    )
    for phase, refusal, final, waiting, stall, orphaned in product(
        (None, *Phase), (None, WHY), (False, True), (None, WHY), (None, WHY), (False, True)
    )
]


@pytest.mark.parametrize("facts", EVERYTHING)
def test_every_condition_is_always_there_with_reason_and_message(facts: StatusFacts) -> None:
    told = verdicts(facts)

    assert {verdict.type for verdict in told} == ALL_TYPES
    assert all(verdict.reason and verdict.message for verdict in told)


@pytest.mark.parametrize("facts", EVERYTHING)
def test_in_progress_and_doomed_exclude_each_other(facts: StatusFacts) -> None:
    told = {verdict.type: verdict.status for verdict in verdicts(facts)}

    assert not (told[ConditionType.RECONCILING] and told[ConditionType.STALLED])


@pytest.mark.parametrize("facts", EVERYTHING)
def test_equal_facts_give_an_equal_status_at_any_time(facts: StatusFacts) -> None:
    first = render({}, facts, generation=1, now=NOW)

    assert render(first, facts, generation=1, now=NOW + timedelta(hours=1)) == first


@pytest.mark.parametrize("facts", EVERYTHING)
def test_what_is_written_can_be_read(facts: StatusFacts) -> None:
    rendered = render({}, facts, generation=1, now=NOW)

    assert RecordStatus.model_validate(rendered).phase == (facts.resource and facts.resource.phase)


def test_a_transition_moves_only_the_time_of_what_changed() -> None:
    before = render({}, StatusFacts(resource=resource()), generation=1, now=NOW)
    later = NOW + timedelta(minutes=5)

    after = render(
        before, StatusFacts(resource=resource(phase=Phase.READY)), generation=1, now=later
    )

    times = {item["type"]: item["lastTransitionTime"] for item in after["conditions"]}
    assert times["Ready"] == "2026-11-21T12:05:00Z"
    assert times["Admitted"] == "2026-11-21T12:00:00Z"
    assert is_true(after, ConditionType.READY)
