"""Who deletes the substrate, over all 16 states of an XR, and when a record is torn down."""

from __future__ import annotations

from itertools import product

import pytest

from reconciler.domain.broker.release import (
    Farewell,
    Fence,
    FenceFacts,
    Release,
    XRFacts,
    next_farewell,
    next_fence,
    next_release,
    teardown_asked,
)

EVERYTHING = [
    XRFacts(exists=exists, terminating=terminating, composing_finalizer=finalizer, paused=paused)
    for exists, terminating, finalizer, paused in product((False, True), repeat=4)
]


@pytest.mark.parametrize("xr", EVERYTHING)
def test_crossplane_drops_only_what_it_still_composes(xr: XRFacts) -> None:
    composing = xr.exists and not xr.terminating and not xr.paused

    assert (next_release(xr) is Release.LET_CROSSPLANE_DROP) == composing


@pytest.mark.parametrize("xr", EVERYTHING)
def test_nobody_deletes_while_a_pipeline_run_may_be_in_flight(xr: XRFacts) -> None:
    in_flight = xr.exists and xr.terminating and xr.composing_finalizer and not xr.paused

    assert (next_release(xr) is Release.WAIT_FOR_CROSSPLANE) == in_flight


@pytest.mark.parametrize("xr", EVERYTHING)
def test_exactly_one_actor_is_named(xr: XRFacts) -> None:
    assert next_release(xr) in Release


FLAGS = list(product((False, True), repeat=4))
FENCES = [
    FenceFacts(xr=xr, published=published, acknowledged=acknowledged, seen=seen, pipeline_over=over)
    for xr in EVERYTHING
    for published, acknowledged, seen, over in FLAGS
]


@pytest.mark.parametrize("facts", FENCES)
def test_nothing_composed_and_nothing_allowed_needs_no_fence(facts: FenceFacts) -> None:
    if not facts.xr.exists or not facts.published or facts.acknowledged:
        assert next_fence(facts) is Fence.PASSED


@pytest.mark.parametrize("facts", FENCES)
def test_absence_is_never_believed_while_a_run_may_be_in_flight(facts: FenceFacts) -> None:
    in_flight = (
        facts.xr.exists
        and facts.published
        and not facts.acknowledged
        and (
            (facts.xr.paused and not facts.pipeline_over and not facts.seen)
            or (not facts.xr.paused and (not facts.xr.terminating or facts.xr.composing_finalizer))
        )
    )

    assert (next_fence(facts) is not Fence.PASSED) == in_flight


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
    taken = next_farewell(terminating=terminating) is Farewell.TAKE_FINALIZER_OFF

    assert taken == terminating
