"""What becomes of a sibling, over every combination of what is known of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Final

from reconciler.domain.teardown.sibling_cleanup import (
    SiblingCleanup,
    SiblingFacts,
    SiblingStep,
    next_sibling_step,
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
GONE: Final = next(xr for xr in XRS if not xr.exists)
LOOKS: Final = 4
"""The run that is awaited ends, the hold comes off, it is deleted, it goes."""
UNNEEDED = [facts for facts in FACTS if not facts.needed]


def test_every_combination_maps_to_a_step() -> None:
    assert {next_sibling_step(facts).parting for facts in FACTS} == set(SiblingCleanup)


def test_what_another_node_needs_is_not_touched() -> None:
    untouched = SiblingStep(parting=SiblingCleanup.KEEP, let_go=False, settled=True)

    assert {next_sibling_step(facts) for facts in FACTS if facts.needed} == {untouched}


def test_a_hold_comes_off_nothing_but_what_is_there_and_held() -> None:
    loosened = [facts for facts in FACTS if next_sibling_step(facts).let_go]

    assert loosened
    assert all(facts.exists and facts.held and not facts.needed for facts in loosened)


def test_no_hold_outlasts_the_first_look_at_what_nobody_needs() -> None:
    held = [facts for facts in UNNEEDED if facts.exists and facts.held]

    assert {next_sibling_step(facts).parting for facts in held} == set(SiblingCleanup) - {
        SiblingCleanup.KEEP
    }
    assert all(next_sibling_step(facts).let_go for facts in held)


def test_nothing_is_deleted_that_is_not_there_or_another_ones_or_going() -> None:
    deleted = [
        facts for facts in FACTS if next_sibling_step(facts).parting is SiblingCleanup.DELETE
    ]

    assert deleted
    for facts in deleted:
        assert facts.exists
        assert facts.controlled
        assert not facts.needed
        assert not facts.terminating


def test_nothing_is_deleted_while_its_composite_may_want_it_or_make_it_again() -> None:
    deleted = [
        facts for facts in FACTS if next_sibling_step(facts).parting is SiblingCleanup.DELETE
    ]

    assert {facts.xr.exists for facts in deleted} == {True, False}
    for facts in deleted:
        assert not facts.xr.composing
        assert facts.xr.terminating or not facts.xr.exists


def test_nothing_is_settled_while_it_is_held_or_a_run_may_hold_it_again() -> None:
    settled = [facts for facts in UNNEEDED if next_sibling_step(facts).settled]

    assert settled
    for facts in settled:
        assert not (facts.exists and facts.held)
        assert facts.pipeline_over or not facts.xr.composing


def test_nothing_is_settled_that_is_still_to_be_deleted() -> None:
    for facts in UNNEEDED:
        left = not facts.xr.exists or facts.xr.terminating
        if facts.exists and facts.controlled and not facts.terminating and left:
            assert not next_sibling_step(facts).settled


def test_all_of_it_comes_to_an_end_once_its_composite_has() -> None:
    """Every look does what the one before said; in the end nobody looks any more."""
    for first in UNNEEDED:
        if first.pipeline_over or not first.xr.composing:
            facts, step = first, next_sibling_step(first)
            for _ in range(LOOKS):
                facts = _looked_at_again(facts, step)
                step = next_sibling_step(facts)

            assert step.settled, first
            wanted = facts.xr.exists and not facts.xr.terminating
            assert wanted or not (facts.exists and facts.controlled), first


def test_a_composite_that_lives_keeps_what_it_controls() -> None:
    for facts in UNNEEDED:
        if facts.xr.exists and not facts.xr.terminating:
            assert next_sibling_step(facts).parting is SiblingCleanup.LEAVE


def test_crossplane_is_waited_for_only_where_a_run_may_be_in_flight() -> None:
    waiting = [
        facts
        for facts in FACTS
        if next_sibling_step(facts).parting is SiblingCleanup.AWAIT_CROSSPLANE
    ]

    assert waiting
    assert all(facts.xr.composing and facts.xr.terminating for facts in waiting)


def _looked_at_again(facts: SiblingFacts, step: SiblingStep) -> SiblingFacts:
    """Return the facts after a step, after what was going went, and after a run that is awaited."""
    gone = facts.exists and facts.terminating and not facts.held
    ended = step.parting is SiblingCleanup.AWAIT_CROSSPLANE
    return replace(
        facts,
        held=facts.held and not step.let_go,
        exists=facts.exists and not gone,
        terminating=facts.terminating or step.parting is SiblingCleanup.DELETE,
        xr=GONE if ended else facts.xr,
    )
