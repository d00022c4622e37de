"""What becomes of a sibling, over every combination of what is known of it."""

from __future__ import annotations

from itertools import product

from reconciler.domain.broker.parting import (
    Parting,
    SiblingFacts,
    SiblingStep,
    next_parting,
)
from tests.unit.reconciler.domain.test_release import EVERYTHING as XRS

FACTS = [
    SiblingFacts(
        exists=exists,
        held=held,
        needed=needed,
        controlled=controlled,
        terminating=terminating,
        xr=xr,
        pipeline_over=over,
    )
    for exists, held, needed, controlled, terminating, over in product((False, True), repeat=6)
    for xr in XRS
]
UNNEEDED = [facts for facts in FACTS if not facts.needed]


def test_every_combination_maps_to_a_step() -> None:
    assert {next_parting(facts).parting for facts in FACTS} == set(Parting)


def test_what_another_node_needs_is_not_touched() -> None:
    untouched = SiblingStep(parting=Parting.KEEP, let_go=False, settled=True)

    assert {next_parting(facts) for facts in FACTS if facts.needed} == {untouched}


def test_what_nobody_needs_loses_its_hold() -> None:
    for facts in UNNEEDED:
        assert next_parting(facts).let_go == (facts.exists and facts.held)


def test_only_what_its_composite_left_behind_is_deleted() -> None:
    for facts in UNNEEDED:
        left = not facts.xr.exists or (facts.xr.terminating and not facts.xr.composing)
        ours = facts.exists and facts.controlled and not facts.terminating

        assert (next_parting(facts).parting is Parting.DELETE) == (ours and left)


def test_nothing_is_settled_while_it_is_held_or_a_run_may_hold_it_again() -> None:
    settled = [facts for facts in UNNEEDED if next_parting(facts).settled]

    assert settled
    for facts in settled:
        assert not (facts.exists and facts.held)
        assert facts.pipeline_over or not facts.xr.composing
        assert next_parting(facts).parting is Parting.LEAVE


def test_where_no_run_may_come_one_that_is_free_is_waited_for_only_by_its_deletion() -> None:
    for facts in UNNEEDED:
        quiet = facts.pipeline_over or not facts.xr.composing
        if quiet and not (facts.exists and facts.held):
            step = next_parting(facts)

            assert step.settled == (step.parting is Parting.LEAVE)
