"""Where each fault of the simulation was seen on the real thing.

One test per fault, which does to the real database, API server, function or cloud what the
simulated one does, and the proof that it does: where the fault is made, `made` is called,
and a test that is named here and passes without it fails (`tests/conftest.py`). A fake that
does what nothing real does would prove nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from tests.simulation.schedule import Kind

_EFFECTS: Final = (
    "tests/faults/test_every_effect.py::"
    "test_f01_f02_f03_nor_do_they_where_the_reconciler_deletes_the_substrate[{}]"
)
_MATRIX: Final = (
    "tests/e2e/test_deletion_matrix.py::test_nothing_is_left_and_the_node_was_out_first[{}]"
)
_AROUND: Final = "tests/faults/catalogue/test_f34_f55_f58_around.py::{}"

EVIDENCE: Final[Mapping[Kind, str]] = {
    Kind.KILL_BEFORE: _EFFECTS.format("kill-before"),
    Kind.KILL_AFTER: _EFFECTS.format("kill-after"),
    Kind.REFUSED: _EFFECTS.format("fail"),
    Kind.REPLY_LOST: _EFFECTS.format("lose"),
    Kind.STOPPED: "tests/integration/replicas/test_failover.py::"
    "test_fault_04_27_somebody_else_leads_in_time_and_the_life_goes_on[stop-0]",
    Kind.POSTGRES_AWAY: "tests/integration/load/test_postgres_restart.py::"
    "test_a_restart_of_postgres_in_mid_load_costs_no_token_no_node_and_no_event[crash]",
    Kind.API_AWAY: "tests/integration/kubernetes/test_cache.py::"
    "test_a_server_that_comes_late_and_comes_again_is_followed",
    Kind.CONFLICTS: "tests/faults/catalogue/test_f12_f13_refusals.py::"
    "test_f13_a_conflict_on_every_write_changes_nothing[replaced]",
    Kind.WATCH_STALLED: "tests/integration/kubernetes/test_cache.py::"
    "test_a_silent_stream_is_given_up_for_a_list",
    Kind.TIME_TRAVEL: "tests/faults/catalogue/test_f15_f19_stale_views.py::"
    "test_f15_old_versions_in_mid_teardown_do_not_turn_it_round",
    Kind.SPLIT_LEAD: "tests/integration/replicas/test_failover.py::"
    "test_fault_05_of_a_lease_that_two_believe_in_comes_one_usable_token_each",
    Kind.SLOW_PIPELINE: "tests/e2e/test_lifecycle.py::"
    "test_a_deletion_that_meets_the_creating_run_leaves_nothing[delay-4.0-registered-Background]",
    Kind.BREAKER: "tests/e2e/test_breaker.py::"
    "test_fault_22_a_node_comes_and_leaves_in_order_though_its_breaker_is_open",
    Kind.CROSSPLANE_AWAY: "tests/e2e/test_crossplane_away.py::"
    "test_fault_22_a_node_comes_and_leaves_in_order_though_crossplane_is_away_meanwhile",
    Kind.BLUEPRINT_GONE: "tests/faults/catalogue/test_f66_f67_edits.py::"
    "test_f67_a_blueprint_that_is_withdrawn_under_a_node_neither_harms_nor_holds_it",
    Kind.NAMESPACE_NOT_READY: _AROUND.format(
        "test_f58_a_namespace_that_is_not_ready_is_waited_for_by_name"
    ),
    Kind.POLICIES_GONE: "tests/e2e/test_protection.py::test_without_the_policies_the_order_breaks",
    Kind.CLOCK_SKEW: _AROUND.format(
        "test_f34_a_reconciler_whose_clock_is_ten_minutes_off_ends_as_any[10]"
    ),
    Kind.NODES_CUT_OFF: "tests/integration/load/test_stuck_nodes.py::"
    "test_no_node_is_stuck_after_slow_boots_lost_replies_and_restarts",
    Kind.CLOUD_SLOW: "tests/e2e/test_runbook_provisioning.py::"
    "test_entry_2_a_provider_that_hangs_is_seen_one_level_deeper",
    Kind.CREATE_FAILS: "tests/e2e/test_runbook_provisioning.py::"
    "test_entry_3_a_failed_one_starts_over_under_its_id",
    Kind.TWICE_CREATED: "tests/contract/test_enrolment.py::"
    "TestRaces::test_ten_nodes_with_one_token_make_one[postgres]",
    Kind.DELETE_HANGS: "tests/e2e/test_runbook_deletion.py::"
    "test_entry_3_a_stuck_child_is_named_and_goes_when_its_finalizer_does",
    Kind.FLAPS: _AROUND.format("test_f55_a_substrate_that_flaps_is_one_ready_node"),
    Kind.AGENT_DEAD: "tests/e2e/test_registration_timeout.py::"
    "test_a_machine_whose_node_never_comes_is_made_anew_as_often_as_allowed",
    Kind.AGENT_REPLY_LOST: "tests/contract/test_enrolment.py::"
    "TestLostReply::test_a_retry_gets_the_same_node_and_a_fresh_key[postgres]",
    Kind.AGENT_CLONED: "tests/contract/test_arrivals.py::"
    "TestCopies::test_a_snapshot_without_an_identity_is_refused_and_told_apart[postgres]",
    Kind.AGENT_SLOW: "tests/integration/http/test_late_and_early.py::"
    "test_a_node_after_its_deletion_was_requested_is_told_its_token_is_revoked",
    Kind.DELETE_BACKGROUND: _MATRIX.format("background/Ready/led-by-another-after"),
    Kind.DELETE_FOREGROUND: _MATRIX.format("foreground/Ready/undisturbed"),
    Kind.DELETE_ORPHAN: _MATRIX.format("orphan-then-record/Ready/down-when-asked"),
    Kind.DELETE_RECORD: _MATRIX.format("record-then-xr/Ready/killed-after"),
    Kind.STRIP_FINALIZER: _MATRIX.format("record-without-finalizer/Ready/killed-after"),
    Kind.BREAK_GLASS: _MATRIX.format("substrate-by-break-glass/Ready/down-when-asked"),
    Kind.PAUSE_XR: "tests/e2e/test_runbook_provisioning.py::"
    "test_entry_6_a_lost_substrate_comes_back_when_a_person_says_so",
    Kind.EDIT: "tests/faults/catalogue/test_f66_f67_edits.py::"
    "test_f66_a_declaration_that_changes_with_every_round_still_becomes_one_node",
    Kind.RETRY: "tests/integration/lives/test_retry.py::"
    "test_a_failed_resource_starts_over_with_the_same_id_substrate_and_token",
}
"""By fault: the test, as pytest names it."""

_made: defaultdict[str, set[Kind]] = defaultdict(set)


def made(kind: Kind) -> None:
    """Say that the running test makes a fault here, on the real thing."""
    _made[_module(os.environ.get("PYTEST_CURRENT_TEST", ""))].add(kind)


def unmade(test: str) -> list[Kind]:
    """Return the faults that a test is named for and nobody in its module has made."""
    shown = [kind for kind, named in EVIDENCE.items() if named == test]
    return [kind for kind in shown if kind not in _made[_module(test)]]


def _module(test: str) -> str:
    return test.partition("::")[0]
