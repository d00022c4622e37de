"""The state machine, over every input there is: eight phases and an unknown one, 64 facts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from function.contract.strategy import Phase
from reconciler.domain.aggregate.phase import TEARDOWN, Action, ObservedXR, is_teardown, next_phase

UNKNOWN = "Hibernating"
PHASES = [*(phase.value for phase in Phase), UNKNOWN]
OBSERVATIONS = [
    ObservedXR(
        exists=exists,
        ready=ready,
        failed=failed,
        node_registered=node,
        force_released=forced,
        uninjected=uninjected,
    )
    for exists, ready, failed, node, forced, uninjected in product((False, True), repeat=6)
]
EVERYTHING = [(phase, seen) for phase in PHASES for seen in OBSERVATIONS]
CONVERGING = [(p, seen) for p, seen in EVERYTHING if p not in TEARDOWN and p != Phase.FAILED]
GOING = [(p, seen) for p, seen in EVERYTHING if p in TEARDOWN]
STAYING = [(p, seen) for p, seen in EVERYTHING if p not in TEARDOWN]
IN_THE_MESH = [
    (p, seen)
    for p, seen in EVERYTHING
    if p != Phase.DELETED and seen.node_registered and not seen.force_released
]
FORCED = [(p, seen) for p, seen in GOING if seen.force_released]


def test_the_table_has_every_combination() -> None:
    assert len(EVERYTHING) == 9 * 64


@pytest.mark.parametrize(("phase", "seen"), EVERYTHING)
def test_every_pair_maps_to_a_closed_result_with_a_reason(phase: str, seen: ObservedXR) -> None:
    decision = next_phase(phase, seen)

    assert decision.phase in Phase
    assert decision.action in Action
    assert decision.reason


@pytest.mark.parametrize(("phase", "seen"), EVERYTHING)
def test_deciding_twice_on_one_observation_is_deciding_once(phase: str, seen: ObservedXR) -> None:
    once = next_phase(phase, seen)

    assert next_phase(once.phase, seen).phase is once.phase


@pytest.mark.parametrize(("phase", "seen"), IN_THE_MESH)
def test_a_registered_node_is_never_behind_a_deleted_substrate(
    phase: str, seen: ObservedXR
) -> None:
    decision = next_phase(phase, seen)

    assert decision.action is not Action.DELETE_SUBSTRATE
    assert decision.phase is not Phase.DELETED


@pytest.mark.parametrize(("phase", "seen"), STAYING)
def test_a_forced_release_means_nothing_before_a_teardown(phase: str, seen: ObservedXR) -> None:
    unforced = replace(seen, force_released=False)

    assert next_phase(phase, seen) == next_phase(phase, unforced)


@pytest.mark.parametrize(("phase", "seen"), FORCED)
def test_a_forced_release_is_a_teardown_without_a_node(phase: str, seen: ObservedXR) -> None:
    nobody = replace(seen, force_released=False, node_registered=False)

    told, gone = next_phase(phase, seen), next_phase(phase, nobody)

    assert (told.action, told.phase) == (gone.action, gone.phase)


@pytest.mark.parametrize(("phase", "seen"), GOING)
def test_teardown_never_leads_back(phase: str, seen: ObservedXR) -> None:
    assert is_teardown(next_phase(phase, seen).phase)


@pytest.mark.parametrize(("phase", "seen"), EVERYTHING)
def test_teardown_actions_belong_to_teardown_phases(phase: str, seen: ObservedXR) -> None:
    decision = next_phase(phase, seen)

    destructive = decision.action in (Action.DEREGISTER_NODE, Action.DELETE_SUBSTRATE)
    assert destructive <= is_teardown(decision.phase)


@pytest.mark.parametrize("seen", OBSERVATIONS)
@pytest.mark.parametrize("sink", [Phase.FAILED, Phase.DELETED])
def test_sinks_are_sticky(sink: Phase, seen: ObservedXR) -> None:
    decision = next_phase(sink, seen)

    assert (decision.action, decision.phase) == (Action.NOOP, sink)


@pytest.mark.parametrize(("phase", "seen"), CONVERGING)
def test_terminal_failure_comes_first(phase: str, seen: ObservedXR) -> None:
    assert (next_phase(phase, seen).phase is Phase.FAILED) == seen.failed


@pytest.mark.parametrize("seen", OBSERVATIONS)
def test_an_unknown_phase_counts_as_pending(seen: ObservedXR) -> None:
    assert next_phase(UNKNOWN, seen) == next_phase(Phase.PENDING, seen)


@pytest.mark.parametrize(("phase", "seen"), CONVERGING)
def test_the_converge_arm_reads_no_phase(phase: str, seen: ObservedXR) -> None:
    assert next_phase(phase, seen) == next_phase(Phase.PENDING, seen)


@pytest.mark.parametrize(("phase", "seen"), CONVERGING)
def test_ready_is_a_ready_substrate_with_its_node_or_without_a_bootstrap(
    phase: str, seen: ObservedXR
) -> None:
    enrolled = seen.node_registered or seen.uninjected

    ready = next_phase(phase, seen).phase is Phase.READY

    assert ready == (seen.exists and seen.ready and not seen.failed and enrolled)


@pytest.mark.parametrize(("phase", "seen"), GOING)
def test_a_missing_bootstrap_means_nothing_to_a_teardown(phase: str, seen: ObservedXR) -> None:
    assert next_phase(phase, seen) == next_phase(phase, replace(seen, uninjected=False))


@pytest.mark.parametrize(
    ("reason", "phase", "facts", "action", "then"),
    [
        ("nothing there yet", "Pending", (0, 0, 0, 0), "Apply", "Pending"),
        ("a node before its substrate", "Pending", (0, 0, 0, 1), "Apply", "Pending"),
        ("the cloud works", "Pending", (1, 0, 0, 0), "Apply", "Provisioning"),
        ("it runs, nobody home", "Provisioning", (1, 1, 0, 0), "Apply", "Enrolling"),
        ("enrolled", "Enrolling", (1, 1, 0, 1), "Noop", "Ready"),
        ("quota refused", "Provisioning", (1, 0, 1, 0), "Noop", "Failed"),
        ("deleted out of band", "Ready", (0, 0, 0, 1), "Apply", "Pending"),
        ("the node first", "Deregistering", (1, 1, 0, 1), "DeregisterNode", "Deregistering"),
        ("also when the XR is gone", "Deregistering", (0, 0, 0, 1), "DeregisterNode",
         "Deregistering"),
        ("a node came late", "Deprovisioning", (1, 1, 0, 1), "DeregisterNode", "Deregistering"),
        ("then the substrate", "Deregistering", (1, 1, 0, 0), "DeleteSubstrate",
         "Deprovisioning"),
        ("a failed one goes as well", "Deprovisioning", (1, 0, 1, 0), "DeleteSubstrate",
         "Deprovisioning"),
        ("gone", "Deprovisioning", (0, 0, 0, 0), "Noop", "Deleted"),
    ],
)  # fmt: skip
def test_the_rows_people_read(
    reason: str, phase: str, facts: tuple[int, int, int, int], action: str, then: str
) -> None:
    exists, ready, failed, node = map(bool, facts)
    seen = ObservedXR(exists=exists, ready=ready, failed=failed, node_registered=node)

    decision = next_phase(phase, seen)

    assert (decision.action.value, decision.phase.value) == (action, then), reason


@pytest.mark.parametrize(
    ("reason", "phase", "exists", "action", "then"),
    [
        ("given up, the machine goes", "Deregistering", True, "DeleteSubstrate", "Deprovisioning"),
        ("given up, nothing is left", "Deregistering", False, "Noop", "Deleted"),
        ("and it does not turn back", "Deprovisioning", True, "DeleteSubstrate", "Deprovisioning"),
    ],
)
def test_the_rows_of_a_forced_release(
    reason: str, phase: str, exists: bool, action: str, then: str
) -> None:
    seen = ObservedXR(
        exists=exists, ready=False, failed=False, node_registered=True, force_released=True
    )

    decision = next_phase(phase, seen)

    assert (decision.action.value, decision.phase.value) == (action, then), reason
    assert "given up" in decision.reason
