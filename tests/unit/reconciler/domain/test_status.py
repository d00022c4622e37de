"""The status document: stable while nothing changes, complete in every situation."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from function.contract.conditions import ConditionType, is_true
from function.contract.record import RecordStatus
from function.contract.strategy import Phase
from reconciler.domain.aggregate import phase as phases
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.record.conditions import StatusFacts, conditions_of
from reconciler.domain.record.status import may_wait, render
from tests.unit.reconciler.samples import NOW, resource

WHY = Explanation(reason="Because", message="A reason.")
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


_FLAGS = [(False, True)] * 3
EVERYTHING = [
    StatusFacts(
        resource=_aggregate(phase),
        refusal=refusal,
        refusal_is_final=final,
        waiting=waiting,
        stall=stall,
        orphaned=orphaned,
        uninjected=uninjected,
        substrate_absent=absent,
    )
    for phase, refusal, final, waiting, stall, orphaned, uninjected, absent in product(
        (None, *Phase), (None, WHY), (False, True), (None, WHY), (None, WHY), *_FLAGS
    )
]


@pytest.mark.parametrize("facts", EVERYTHING)
def test_every_condition_is_always_there_with_reason_and_message(facts: StatusFacts) -> None:
    told = conditions_of(facts)

    assert {verdict.type for verdict in told} == ALL_TYPES
    assert all(verdict.reason and verdict.message for verdict in told)


@pytest.mark.parametrize("facts", EVERYTHING)
def test_in_progress_and_doomed_exclude_each_other(facts: StatusFacts) -> None:
    told = {verdict.type: verdict.status for verdict in conditions_of(facts)}

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


def _rendered(phase: Phase, **facts: Any) -> dict[str, Any]:
    return render({}, StatusFacts(resource=_aggregate(phase), **facts), generation=1, now=NOW)


def test_a_record_that_was_never_accepted_can_ask_for_no_substrate() -> None:
    facts = StatusFacts(resource=None, substrate_absent=True)

    rendered = render({}, facts, generation=1, now=NOW)

    assert rendered["substrate"] == "Absent"
    assert "phase" not in rendered


def test_a_resource_that_was_there_first_is_ready_and_no_node() -> None:
    rendered = _rendered(Phase.READY, uninjected=True)

    told = {item["type"]: (item["status"], item["reason"]) for item in rendered["conditions"]}
    assert told["Ready"] == ("True", "NotInjected")
    assert told["NodeRegistered"] == ("False", "NotInjected")


ON_ITS_WAY = {Phase.PENDING, Phase.PROVISIONING, Phase.ENROLLING}


@pytest.mark.parametrize(("before", "after"), list(product(Phase, repeat=2)))
def test_only_the_way_from_a_substrate_to_its_node_may_wait(before: Phase, after: Phase) -> None:
    quiet = before in ON_ITS_WAY and after in ON_ITS_WAY - {Phase.PENDING}

    assert may_wait(_rendered(before), _rendered(after)) == quiet


@pytest.mark.parametrize(
    "news",
    [{"refusal": WHY}, {"stall": WHY}, {"orphaned": True}, {"substrate_absent": True}],
    ids=["refusal", "stall", "orphaned", "absent"],
)
def test_what_somebody_must_know_does_not_wait(news: dict[str, Any]) -> None:
    assert not may_wait(_rendered(Phase.PENDING), _rendered(Phase.PROVISIONING, **news))
    assert not may_wait({}, _rendered(Phase.PROVISIONING))
