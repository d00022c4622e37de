"""The plan of a reconcile, over every combination of its facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from function.contract.strategy import Phase
from reconciler.domain.aggregate.phase import TEARDOWN, Action, ObservedXR, next_phase
from reconciler.domain.converge.plan import ConvergeFacts, ConvergeStep, decide

BOOLEANS = (False, True)
OBSERVATIONS = [
    ObservedXR(
        exists=exists, ready=ready, failed=failed, node_registered=node, uninjected=uninjected
    )
    for exists, ready, failed, node, uninjected in product(BOOLEANS, repeat=5)
]
GIVES_OUT = {ConvergeStep.APPLY, ConvergeStep.START_OVER}


def every_combination() -> Iterator[ConvergeFacts]:
    """Yield each phase, living or with its deletion requested, with each set of facts."""
    phases = [(phase, phase) for phase in Phase]
    phases += [(phase, Phase.DEREGISTERING) for phase in Phase if phase not in TEARDOWN]
    for (phase, machine), observed in product(phases, OBSERVATIONS):
        for flags in product(BOOLEANS, repeat=6):
            lost, retried, open_, learned, rendered, published = flags
            yield ConvergeFacts(
                phase=phase,
                machine_phase=machine,
                observed=observed,
                lost=lost,
                retried=retried,
                open=open_,
                learned=learned,
                rendered=rendered,
                published=published,
            )


EVERYTHING = list(every_combination())


def test_every_combination_has_a_plan_with_a_reason() -> None:
    assert all(decide(facts).reason for facts in EVERYTHING)
    assert {decide(facts).step for facts in EVERYTHING} == set(ConvergeStep)


def test_the_phase_is_the_state_machines() -> None:
    for facts in EVERYTHING:
        assert decide(facts).phase is next_phase(facts.machine_phase, facts.observed).phase


def test_nothing_is_given_out_for_a_lost_substrate_until_a_retry_may_be_answered() -> None:
    for facts in EVERYTHING:
        if facts.lost and not (facts.retried and facts.open):
            assert decide(facts).step not in GIVES_OUT


def test_a_node_is_taken_out_only_of_a_lost_substrate() -> None:
    for facts in EVERYTHING:
        if not facts.lost:
            assert decide(facts).step is not ConvergeStep.START_OVER


def test_a_requested_deletion_gives_nothing_out() -> None:
    for facts in EVERYTHING:
        if facts.machine_phase in TEARDOWN and not facts.lost:
            assert decide(facts).step not in GIVES_OUT


def test_what_the_machine_applies_is_applied_while_the_substrate_is_not_lost() -> None:
    for facts in EVERYTHING:
        applies = next_phase(facts.machine_phase, facts.observed).action is Action.APPLY
        if applies and not facts.lost:
            assert decide(facts).step is ConvergeStep.APPLY


def test_a_plan_that_was_carried_out_writes_nothing_more() -> None:
    for facts in EVERYTHING:
        plan = decide(facts)
        if facts.machine_phase is not facts.phase:
            continue
        after = replace(
            facts,
            phase=plan.phase,
            machine_phase=plan.phase,
            learned=False,
            rendered=True,
            published=True,
        )
        again = decide(after)
        assert [again.enters, again.remembers, again.announces] == [False] * 3, facts


def test_news_of_the_substrate_is_stored_once_with_the_phase_or_alone() -> None:
    for facts in EVERYTHING:
        plan = decide(facts)
        assert not (plan.enters and plan.remembers)
        if facts.learned:
            assert plan.enters or plan.remembers


def test_a_first_status_and_an_entered_phase_are_announced_and_nothing_else() -> None:
    for facts in EVERYTHING:
        plan = decide(facts)
        assert plan.announces == (plan.phase is not facts.phase or not facts.published)
