"""The laws of the decision, each over every situation."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from function.compose.stage import (
    PLANS,
    UNRECORDED,
    RecordState,
    Stage,
    StageFacts,
    SubstrateLookup,
    SubstratePlan,
    TokenState,
    stage_of,
)

BOTH = (False, True)

EVERY = tuple(
    StageFacts(
        preview=preview,
        refused=refused,
        record=record,
        accepted=accepted,
        absent=absent,
        sight=sight,
        held=held,
        token=token,
        drain=drain,
        acknowledged=acknowledged,
    )
    for preview, refused, record, accepted, absent, sight, held, token, drain, acknowledged in (
        itertools.product(
            *(BOTH, BOTH, RecordState, BOTH, BOTH, SubstrateLookup, BOTH, TokenState, BOTH, BOTH)
        )
    )
)
REAL = tuple(situation for situation in EVERY if not situation.preview)


def plan(situation: StageFacts) -> SubstratePlan:
    return PLANS[stage_of(situation)]


CAUSES: dict[Stage, tuple[str, object, object]] = {
    Stage.ABSENT: ("absent", True, False),
    Stage.DRAINED: ("acknowledged", True, False),
    Stage.TERMINATING: ("record", RecordState.TERMINATING, RecordState.ALIVE),
    Stage.DRAINING: ("drain", True, False),
    Stage.SEEK: ("sight", SubstrateLookup.UNKNOWN, SubstrateLookup.MISSING),
    Stage.VANISHING: ("sight", SubstrateLookup.VANISHING, SubstrateLookup.MISSING),
    Stage.HELD: ("held", True, False),
    Stage.WAIT_TOKEN: ("token", TokenState.ABSENT, TokenState.AT_HAND),
}
"""What a stage says is so, and what ends it."""
SIGHTED = (SubstrateLookup.OBSERVED, SubstrateLookup.FOUND)


def recorded(situation: StageFacts) -> bool:
    """Tell whether a record is there that lives and is not to go, and its step goes on."""
    gone = situation.absent or situation.drain
    return situation.record is RecordState.ALIVE and not gone


def test_every_situation_has_a_stage_with_a_plan() -> None:
    assert len(EVERY) == 5760
    assert {stage_of(situation) for situation in EVERY} == set(Stage) - {Stage.WITHHELD}
    assert set(PLANS) == set(Stage)


def test_an_observed_substrate_is_dropped_only_on_absent() -> None:
    dropped = [
        situation
        for situation in REAL
        if situation.sight is SubstrateLookup.OBSERVED and plan(situation) is SubstratePlan.NONE
    ]

    assert dropped
    assert all(s.absent and s.record is not RecordState.NONE for s in dropped)


def test_an_absent_substrate_is_never_composed() -> None:
    asked_to_go = [s for s in REAL if s.absent and s.record is not RecordState.NONE]

    assert all(plan(situation) is SubstratePlan.NONE for situation in asked_to_go)


def test_nothing_is_created_unless_everything_allows_it() -> None:
    births = [situation for situation in REAL if plan(situation) is SubstratePlan.BIRTH]

    assert births
    for situation in births:
        assert situation.record is RecordState.ALIVE
        assert situation.accepted
        assert not any((situation.refused, situation.absent, situation.held))
        assert situation.sight is SubstrateLookup.MISSING
        assert situation.token is not TokenState.ABSENT


def test_a_record_goes_only_once_it_said_that_its_substrate_is_dropped() -> None:
    gone = [s for s in REAL if stage_of(s) in UNRECORDED and s.record is not RecordState.NONE]

    assert gone
    assert all(s.drain and s.absent and s.acknowledged for s in gone)


def test_a_terminating_record_never_creates_or_renders() -> None:
    going = [s for s in REAL if s.record is RecordState.TERMINATING]

    assert {plan(situation) for situation in going} == {SubstratePlan.NONE, SubstratePlan.KEEP}


def test_a_refused_declaration_changes_no_substrate() -> None:
    refused = [s for s in REAL if s.refused]

    assert {plan(situation) for situation in refused} == {SubstratePlan.NONE, SubstratePlan.KEEP}


def test_a_preview_depends_on_the_declaration_alone() -> None:
    previews = [situation for situation in EVERY if situation.preview]

    assert {(s.refused, stage_of(s)) for s in previews} == {
        (True, Stage.REFUSED),
        (False, Stage.PREVIEW),
    }
    assert {(s.refused, plan(s)) for s in previews} == {
        (True, SubstratePlan.NONE),
        (False, SubstratePlan.BIRTH),
    }


@pytest.mark.parametrize("stage", CAUSES)
def test_a_stage_is_named_only_where_its_cause_is_so_and_ends_with_it(stage: Stage) -> None:
    field, cause, end = CAUSES[stage]
    named = [situation for situation in REAL if stage_of(situation) is stage]

    assert named
    for situation in named:
        assert getattr(situation, field) == cause
        ended = replace(situation, **{field: end})  # type: ignore[arg-type]
        assert stage_of(ended) is not stage


def test_what_everything_allows_is_created() -> None:
    allowed = [
        s
        for s in REAL
        if recorded(s)
        and s.accepted
        and not (s.refused or s.held)
        and s.sight is SubstrateLookup.MISSING
        and s.token is not TokenState.ABSENT
    ]

    assert {plan(situation) for situation in allowed} == {SubstratePlan.BIRTH}


def test_what_is_in_sight_is_rendered_whatever_a_new_one_would_wait_for() -> None:
    sighted = [
        s for s in REAL if recorded(s) and s.accepted and not s.refused and s.sight in SIGHTED
    ]
    rendered = [s for s in REAL if plan(s) is SubstratePlan.RENDER]

    assert {(s.held, s.token) for s in sighted} == set(itertools.product(BOTH, TokenState))
    assert set(rendered) == set(sighted)


def test_what_a_new_one_waits_for_is_named_from_what_is_least_in_our_hands() -> None:
    waits = {Stage.SEEK, Stage.VANISHING, Stage.HELD, Stage.WAIT_TOKEN}
    waiting = [situation for situation in REAL if stage_of(situation) in waits]

    assert {stage_of(situation) for situation in waiting} == waits
    assert {plan(situation) for situation in waiting} == {SubstratePlan.NONE}
    for situation in waiting:
        assert recorded(situation)
        assert situation.accepted
        assert not situation.refused
    for situation in waiting:
        if stage_of(situation) in {Stage.HELD, Stage.WAIT_TOKEN}:
            assert situation.sight is SubstrateLookup.MISSING
    assert not any(s.held for s in waiting if stage_of(s) is Stage.WAIT_TOKEN)


def test_a_record_that_is_to_go_says_so_whatever_else_is_so() -> None:
    going = [s for s in REAL if s.absent and s.record is not RecordState.NONE]

    assert {stage_of(s) for s in going} == {Stage.ABSENT, Stage.DRAINED}
    assert all(stage_of(s) is Stage.DRAINED for s in going if s.drain and s.acknowledged)


def test_what_goes_in_order_is_kept_until_its_record_says_otherwise() -> None:
    going = [
        s
        for s in REAL
        if s.record is not RecordState.NONE
        and not s.absent
        and (s.drain or s.record is RecordState.TERMINATING)
    ]

    assert {(s.record, stage_of(s)) for s in going} == {
        (RecordState.TERMINATING, Stage.TERMINATING),
        (RecordState.ALIVE, Stage.DRAINING),
    }
    assert {plan(s) for s in going} == {SubstratePlan.KEEP}


def test_a_bootstrap_that_cannot_be_made_is_no_reason_to_make_a_machine_without_it() -> None:
    assert PLANS[Stage.WITHHELD] is SubstratePlan.NONE


def test_without_a_record_only_a_refusal_and_what_was_composed_count() -> None:
    unknown = [s for s in REAL if s.record is RecordState.NONE]
    seen = {(s.refused, s.sight is SubstrateLookup.OBSERVED, stage_of(s)) for s in unknown}

    assert len(seen) == 4
    assert {stage for refused, _, stage in seen if not refused} == {Stage.RECORD_ONLY}
    assert {stage for refused, composed, stage in seen if refused and composed} == {Stage.KEEP}
    assert {plan(s) for s in unknown if s.sight is not SubstrateLookup.OBSERVED and s.refused} == {
        SubstratePlan.NONE
    }


def test_a_record_is_made_of_everything_that_is_not_refused_and_of_nothing_else() -> None:
    first = [s for s in REAL if s.record is RecordState.NONE and s.sight not in SIGHTED]

    assert {s.refused for s in first} == set(BOTH)
    for situation in first:
        assert (stage_of(situation) in UNRECORDED) == situation.refused


def test_a_record_that_is_not_accepted_or_refused_now_keeps_what_it_has_and_makes_nothing() -> None:
    waiting = [s for s in REAL if recorded(s) and (s.refused or not s.accepted)]

    assert {plan(s) for s in waiting} == {SubstratePlan.KEEP}
    assert {(s.refused, stage_of(s)) for s in waiting} == {
        (True, Stage.KEEP),
        (False, Stage.RECORD_ONLY),
    }
