"""Who deletes the substrate, over all 16 states of an XR, and when a record is torn down."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

import pytest

from reconciler.domain.teardown.release import (
    AbsenceBarrier,
    AbsenceFacts,
    FinalizerStep,
    Release,
    XRFacts,
    next_barrier,
    next_finalizer_step,
    next_release,
    teardown_asked,
)

EVERYTHING = [
    XRFacts(exists=exists, terminating=terminating, composing_finalizer=finalizer, paused=paused)
    for exists, terminating, finalizer, paused in product((False, True), repeat=4)
]


@pytest.mark.parametrize(
    ("where", "release"),
    [
        ({"exists": True, "terminating": False, "paused": False}, Release.LET_CROSSPLANE_DROP),
        ({"exists": False}, Release.DELETE_OURSELVES),
        ({"paused": True}, Release.DELETE_OURSELVES),
        ({"terminating": True, "composing_finalizer": False}, Release.DELETE_OURSELVES),
    ],
)
def test_one_actor_deletes_as_the_design_says(where: dict[str, bool], release: Release) -> None:
    """The rows of design §2; what one does not name makes no difference to it."""
    told = {next_release(xr) for xr in EVERYTHING if where.items() <= asdict(xr).items()}

    assert told == {release}


@pytest.mark.parametrize("xr", EVERYTHING)
def test_nobody_deletes_while_a_pipeline_run_may_be_in_flight(xr: XRFacts) -> None:
    in_flight = xr.exists and xr.terminating and xr.composing_finalizer and not xr.paused

    assert (next_release(xr) is Release.WAIT_FOR_CROSSPLANE) == in_flight


FENCES = [
    AbsenceFacts(
        xr=xr, published=published, acknowledged=acknowledged, seen=seen, pipeline_over=over
    )
    for xr in EVERYTHING
    for published, acknowledged, seen, over in product((False, True), repeat=4)
]


@pytest.mark.parametrize(
    "facts",
    [each for each in FENCES if not each.xr.exists or not each.published or each.acknowledged],
)
def test_nothing_composed_and_nothing_allowed_needs_no_fence(facts: AbsenceFacts) -> None:
    assert next_barrier(facts) is AbsenceBarrier.PASSED


FENCED = [each for each in FENCES if each.xr.exists and each.published and not each.acknowledged]
"""Where a run may create the substrate that was not found."""

ALIVE = {"terminating": False, "paused": False}
LAST_RUN = {"paused": True, "seen": False, "pipeline_over": False}


@pytest.mark.parametrize(
    ("reason", "where", "fence"),
    [
        ("it acknowledges in its next run", ALIVE, AbsenceBarrier.AWAIT_FUNCTION),
        (
            "its last run goes on",
            {"terminating": True, "paused": False, "composing_finalizer": True},
            AbsenceBarrier.AWAIT_CROSSPLANE,
        ),
        (
            "Crossplane let go of it",
            {"terminating": True, "paused": False, "composing_finalizer": False},
            AbsenceBarrier.PASSED,
        ),
        ("paused in a run that may create", LAST_RUN, AbsenceBarrier.AWAIT_PIPELINE),
        (
            "paused, and its creating run is over",
            {"paused": True, "seen": True},
            AbsenceBarrier.PASSED,
        ),
        ("paused for long", {"paused": True, "pipeline_over": True}, AbsenceBarrier.PASSED),
    ],
)
def test_absence_is_never_believed_while_a_run_may_be_in_flight(
    reason: str, where: dict[str, bool], fence: AbsenceBarrier
) -> None:
    """The cases of docs/decisions/0006; what one does not name makes no difference to it."""
    told = {
        next_barrier(facts)
        for facts in FENCED
        if where.items() <= {**asdict(facts), **asdict(facts.xr)}.items()
    }

    assert told == {fence}, reason


@pytest.mark.parametrize("xr", EVERYTHING)
def test_an_xr_composes_unless_nobody_would_run_it_again(xr: XRFacts) -> None:
    let_go = xr.terminating and (xr.paused or not xr.composing_finalizer)

    assert xr.composing == (xr.exists and not let_go)


@pytest.mark.parametrize(("terminating", "drain"), list(product((False, True), repeat=2)))
def test_a_deletion_and_a_drain_ask_for_the_same_teardown(
    *, terminating: bool, drain: bool
) -> None:
    assert teardown_asked(terminating=terminating, drain=drain) == (terminating or drain)


@pytest.mark.parametrize("terminating", [False, True])
def test_the_finalizer_stays_until_the_record_terminates(*, terminating: bool) -> None:
    taken = next_finalizer_step(terminating=terminating) is FinalizerStep.TAKE_FINALIZER_OFF

    assert taken == terminating
