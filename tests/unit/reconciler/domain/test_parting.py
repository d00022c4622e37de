"""What becomes of a sibling, over every combination of what is known of it."""

from __future__ import annotations

from itertools import product

import pytest

from reconciler.domain.broker.parting import Parting, SiblingFacts, next_parting
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


def test_every_combination_maps_to_a_step() -> None:
    assert {next_parting(facts).parting for facts in FACTS} == set(Parting)


def test_what_another_node_needs_is_not_touched() -> None:
    for facts in FACTS:
        step = next_parting(facts)
        if facts.needed:
            assert step.parting is Parting.KEEP
            assert not step.let_go
            assert step.settled


def test_what_nobody_needs_loses_its_hold() -> None:
    for facts in FACTS:
        if not facts.needed:
            assert next_parting(facts).let_go == (facts.exists and facts.held)


def test_only_what_its_composite_left_behind_is_deleted() -> None:
    for facts in FACTS:
        left = not facts.xr.exists or (facts.xr.terminating and not facts.xr.composing)
        ours = facts.exists and facts.controlled and not facts.terminating and not facts.needed

        assert (next_parting(facts).parting is Parting.DELETE) == (ours and left)


def test_nothing_is_settled_while_it_is_held_or_a_run_may_hold_it_again() -> None:
    for facts in FACTS:
        step = next_parting(facts)
        if step.settled and not facts.needed:
            assert not (facts.exists and facts.held)
            assert facts.pipeline_over or not facts.xr.composing
            assert step.parting is Parting.LEAVE


@pytest.mark.parametrize("facts", [facts for facts in FACTS if facts.pipeline_over])
def test_after_a_pipeline_run_one_that_is_free_is_waited_for_only_by_its_deletion(
    facts: SiblingFacts,
) -> None:
    step = next_parting(facts)

    if not step.settled and not (facts.exists and facts.held):
        assert step.parting in {Parting.DELETE, Parting.AWAIT_CROSSPLANE}
