"""The decision table over every situation: laws first, then the rows that matter."""

from __future__ import annotations

import itertools

import pytest

from function.compose.stage import (
    PLANS,
    UNRECORDED,
    RecordState,
    Situation,
    Stage,
    SubstratePlan,
    SubstrateSight,
    TokenState,
    stage_of,
)

BOTH = (False, True)

EVERY = tuple(
    Situation(
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
            *(BOTH, BOTH, RecordState, BOTH, BOTH, SubstrateSight, BOTH, TokenState, BOTH, BOTH)
        )
    )
)
REAL = tuple(situation for situation in EVERY if not situation.preview)


def plan(situation: Situation) -> SubstratePlan:
    return PLANS[stage_of(situation)]


def usual(**changes: object) -> Situation:
    """A live, accepted record with its token, whose substrate was looked for and not found."""
    fields: dict[str, object] = {
        "preview": False,
        "refused": False,
        "record": RecordState.ALIVE,
        "accepted": True,
        "absent": False,
        "sight": SubstrateSight.MISSING,
        "held": False,
        "token": TokenState.AT_HAND,
    }
    return Situation(**(fields | changes))  # type: ignore[arg-type]


def test_every_situation_has_a_stage_with_a_plan() -> None:
    assert len(EVERY) == 5760
    assert {stage_of(situation) for situation in EVERY} == set(Stage) - {Stage.WITHHELD}
    assert set(PLANS) == set(Stage)


def test_an_observed_substrate_is_dropped_only_on_absent() -> None:
    dropped = [
        situation
        for situation in REAL
        if situation.sight is SubstrateSight.OBSERVED and plan(situation) is SubstratePlan.NONE
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
        assert situation.sight is SubstrateSight.MISSING
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


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"record": RecordState.NONE, "refused": True}, Stage.REFUSED),
        ({"record": RecordState.NONE}, Stage.RECORD_ONLY),
        ({"record": RecordState.NONE, "sight": SubstrateSight.OBSERVED}, Stage.RECORD_ONLY),
        (
            {"record": RecordState.NONE, "refused": True, "sight": SubstrateSight.OBSERVED},
            Stage.KEEP,
        ),
        ({"accepted": False}, Stage.RECORD_ONLY),
        ({"refused": True}, Stage.KEEP),
        ({"refused": True, "absent": True}, Stage.ABSENT),
        ({"absent": True, "record": RecordState.TERMINATING}, Stage.ABSENT),
        ({"record": RecordState.TERMINATING}, Stage.TERMINATING),
        ({"drain": True}, Stage.DRAINING),
        ({"drain": True, "refused": True}, Stage.DRAINING),
        ({"drain": True, "accepted": False}, Stage.DRAINING),
        ({"drain": True, "absent": True}, Stage.ABSENT),
        ({"drain": True, "absent": True, "acknowledged": True}, Stage.DRAINED),
        ({"absent": True, "acknowledged": True}, Stage.ABSENT),
        ({"sight": SubstrateSight.OBSERVED}, Stage.SUSTAIN),
        ({"sight": SubstrateSight.OBSERVED, "held": True}, Stage.SUSTAIN),
        ({"sight": SubstrateSight.FOUND, "token": TokenState.ABSENT}, Stage.SUSTAIN),
        ({"sight": SubstrateSight.UNKNOWN}, Stage.SEEK),
        ({"sight": SubstrateSight.VANISHING}, Stage.VANISHING),
        ({"held": True}, Stage.HELD),
        ({"token": TokenState.ABSENT}, Stage.WAIT_TOKEN),
        ({"token": TokenState.NOT_NEEDED}, Stage.CREATE),
        ({}, Stage.CREATE),
    ],
)
def test_stage_of_a_situation(changes: dict[str, object], stage: Stage) -> None:
    assert stage_of(usual(**changes)) is stage
