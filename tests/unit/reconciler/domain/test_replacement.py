"""What becomes of a machine whose node does not come, over every situation there is."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from itertools import product

import pytest

from function.contract.registration import Registration, RegistrationPolicy
from function.contract.strategy import MeshRole, Phase
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.replacement import replacement, transitions
from reconciler.domain.replacement.replacement import (
    NodePresence,
    ReplacementFacts,
    ReplacementStep,
    decide,
    patience,
    waited,
)
from tests.unit.reconciler import samples

FLAGS = [item.name for item in fields(ReplacementFacts) if item.name != "node"]
EVERYTHING = [
    ReplacementFacts(node=node, **dict(zip(FLAGS, values, strict=True)))
    for node in NodePresence
    for values in product((False, True), repeat=len(FLAGS))
]
TIMEOUT = timedelta(minutes=15)
TOUCHING = frozenset(
    {
        ReplacementStep.REVOKE,
        ReplacementStep.DEREGISTER,
        ReplacementStep.LET_GO,
        ReplacementStep.RELEASE,
        ReplacementStep.AWAIT_FUNCTION,
        ReplacementStep.FINISH,
    }
)
"""The steps that do something to token, node or substrate, or say that it is done."""

ABSENT = frozenset(
    {
        ReplacementStep.LET_GO,
        ReplacementStep.RELEASE,
        ReplacementStep.AWAIT_FUNCTION,
        ReplacementStep.FINISH,
    }
)


def _resting(s: ReplacementFacts) -> ReplacementStep:
    """Say the same of what is not under way in other words."""
    if s.node is NodePresence.REPORTED or not s.overdue:
        return ReplacementStep.NOTHING
    if s.recreate and not s.left:
        return ReplacementStep.EXHAUSTED
    begins = s.recreate and s.free and s.there and s.fair and not s.departed
    return ReplacementStep.BEGIN if begins else ReplacementStep.STALL


def _under_way(s: ReplacementFacts) -> ReplacementStep:
    """Say the same of what is under way as a list of what is still to be done."""
    reclaimable = s.node is NodePresence.SILENT and s.overdue and s.fair
    won = s.departed or (s.node is not NodePresence.NONE and not reclaimable)
    if not s.let_go and (won or not (s.recreate or s.spent)):
        return ReplacementStep.ABANDON
    done = {
        ReplacementStep.WAIT: s.free and not (s.let_go and s.node is not NodePresence.NONE),
        ReplacementStep.REVOKE: s.spent,
        ReplacementStep.DEREGISTER: s.node is NodePresence.NONE,
        ReplacementStep.LET_GO: s.let_go,
        ReplacementStep.RELEASE: not s.there,
        ReplacementStep.AWAIT_FUNCTION: s.acknowledged,
    }
    return next((step for step, is_done in done.items() if not is_done), ReplacementStep.FINISH)


def test_every_situation_has_its_step() -> None:
    assert len(EVERYTHING) == 3 * 2**11
    for one in EVERYTHING:
        assert decide(one) is (_under_way(one) if one.under_way else _resting(one)), one
    assert {decide(one) for one in EVERYTHING} == set(ReplacementStep)


def test_nothing_is_let_go_while_a_node_is_in_the_mesh_or_could_come() -> None:
    going = [one for one in EVERYTHING if decide(one) in ABSENT]

    assert {one.node for one in going} == {NodePresence.NONE}
    assert all(one.spent for one in going)


def test_nothing_is_touched_where_somebody_else_may_act() -> None:
    touching = [one for one in EVERYTHING if decide(one) in TOUCHING | {ReplacementStep.BEGIN}]

    assert all(one.free for one in touching)


def test_a_node_that_reported_is_never_harmed() -> None:
    steps = {decide(one) for one in EVERYTHING if one.node is NodePresence.REPORTED}

    assert steps == {ReplacementStep.NOTHING, ReplacementStep.ABANDON, ReplacementStep.WAIT}


def test_nothing_begins_beyond_the_last_attempt_or_against_the_policy() -> None:
    begun = [one for one in EVERYTHING if decide(one) is ReplacementStep.BEGIN]

    assert all(one.left and one.recreate and one.overdue and one.there for one in begun)
    assert all(one.fair and not one.departed for one in begun)


def test_a_node_is_taken_out_only_where_it_could_have_reported_all_the_time() -> None:
    out = [one for one in EVERYTHING if decide(one) is ReplacementStep.DEREGISTER]

    assert all(one.fair and one.overdue and not one.let_go for one in out)


def test_what_was_let_go_is_never_taken_back() -> None:
    steps = {decide(one) for one in EVERYTHING if one.under_way and one.let_go}

    assert ReplacementStep.ABANDON not in steps


def test_the_machine_is_told_gone_only_when_it_is_and_stays_so() -> None:
    finished = [one for one in EVERYTHING if decide(one) is ReplacementStep.FINISH]

    assert all(one.acknowledged and not one.there and one.let_go for one in finished)


def _after(s: ReplacementFacts, step: ReplacementStep) -> ReplacementFacts:
    """Return what the next look finds when nothing but the step happened."""
    match step:
        case ReplacementStep.BEGIN:
            return replace(s, under_way=True, spent=False, let_go=False)
        case ReplacementStep.ABANDON | ReplacementStep.FINISH:
            return replace(s, under_way=False)
        case ReplacementStep.REVOKE:
            return replace(s, spent=True)
        case ReplacementStep.DEREGISTER:
            return replace(s, node=NodePresence.NONE)
        case ReplacementStep.LET_GO:
            return replace(s, let_go=True)
        case _:
            return s


@pytest.mark.parametrize("begun", [False, True])
def test_steps_lead_to_rest_within_one_tick(begun: bool) -> None:
    for start in EVERYTHING:
        if start.under_way is begun:
            here, steps = start, [decide(start)]
            while (there := _after(here, steps[-1])) != here:
                here = there
                steps.append(decide(here))
                assert len(steps) <= 7, steps
            assert decide(here) is steps[-1]


def _resource(**changes: object) -> ProvisionedResource:
    return samples.resource(phase=Phase.ENROLLING, enrolling_since=samples.NOW, **changes)


def test_a_node_is_waited_for_from_its_machines_readiness() -> None:
    now = samples.NOW + TIMEOUT

    assert waited(_resource(), node_age=None, now=now) == TIMEOUT


@pytest.mark.parametrize("phase", [Phase.ENROLLING, Phase.READY])
def test_a_report_is_waited_for_as_long_as_the_node_is_old_by_the_databases_clock(
    phase: Phase,
) -> None:
    silent = replace(_resource(), phase=phase)
    skewed = samples.NOW + timedelta(hours=5)

    assert waited(silent, node_age=TIMEOUT, now=skewed) == TIMEOUT


def test_the_accepted_time_comes_before_the_reconcilers_own() -> None:
    declared = samples.DECLARATION.model_copy(update={"registration": Registration(timeout="2h")})

    assert patience(_resource(accepted=declared), TIMEOUT) == timedelta(hours=2)
    assert patience(_resource(), TIMEOUT) == TIMEOUT


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.ENROLLING])
def test_nobody_is_waited_for_where_no_node_is_to_come(phase: Phase) -> None:
    resource = replace(_resource(deletion_requested_at=samples.NOW), phase=phase)
    now = samples.NOW + timedelta(days=1)

    assert waited(resource, node_age=None, now=now) is None


def test_nobody_is_waited_for_where_none_is_expected() -> None:
    declared = samples.DECLARATION.model_copy(update={"mesh_role": MeshRole.STANDALONE})
    now = samples.NOW + timedelta(days=1)

    assert waited(_resource(accepted=declared), node_age=None, now=now) is None


def test_without_a_word_of_it_machines_are_kept() -> None:
    assert replacement.policy(_resource()).policy is RegistrationPolicy.KEEP
    assert not replacement.wanted(_resource())


def test_what_was_let_go_starts_over_as_if_never_there() -> None:
    at = samples.NOW + timedelta(hours=1)
    sibling = ProtectedObject(reference=samples.NETWORK, sibling=True)
    before = _resource(protected=(ProtectedObject(reference=samples.SUBSTRATE), sibling))

    going = transitions.let_go(transitions.begun(before, at), "uid-1", at)
    after = transitions.finished(going, at)

    assert (going.protected[0].uid, going.protected[0].released, going.recreations) == (
        "uid-1",
        True,
        1,
    )
    assert after.protected == before.protected
    assert (after.phase, after.recreating_since, after.enrolling_since) == (
        Phase.PENDING,
        None,
        None,
    )
    assert after.recreations == 1


def test_the_uid_of_what_was_let_go_is_forgotten_with_it() -> None:
    known = ProtectedObject(reference=samples.SUBSTRATE, uid="uid-1", seen=True)
    going = transitions.let_go(_resource(protected=(known,)), "uid-1", samples.NOW)

    after = transitions.finished(going, samples.NOW)

    assert after.protected[0].uid is None


def test_what_was_abandoned_counts_for_nothing() -> None:
    at = samples.NOW + timedelta(hours=1)
    before = _resource()

    after = transitions.abandoned(transitions.begun(before, at), at)

    assert replace(after, updated_at=before.updated_at) == before
