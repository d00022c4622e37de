"""Where each fault of the simulation was seen on the real thing.

Belongs here: one file per fault, whose tests do to the real database, API server, function or
cloud what the simulated one does. A fake that does what nothing real does would prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.simulation.schedule import Kind

EVIDENCE: Final[Mapping[Kind, str]] = {
    Kind.KILL_BEFORE: "tests/faults/test_every_effect.py",
    Kind.KILL_AFTER: "tests/faults/test_every_effect.py",
    Kind.REFUSED: "tests/faults/test_every_effect.py",
    Kind.REPLY_LOST: "tests/faults/test_every_effect.py",
    Kind.STOPPED: "tests/integration/replicas/test_late_writes.py",
    Kind.POSTGRES_AWAY: "tests/integration/postgres/test_driver_errors.py",
    Kind.API_AWAY: "tests/integration/kubernetes/test_client.py",
    Kind.CONFLICTS: "tests/contract/test_management_cluster.py",
    Kind.WATCH_STALLED: "tests/integration/kubernetes/test_cache.py",
    Kind.TIME_TRAVEL: "tests/integration/kubernetes/test_cache_doubts.py",
    Kind.SPLIT_LEAD: "tests/integration/replicas/test_late_writes.py",
    Kind.SLOW_PIPELINE: "tests/e2e/test_deletion_matrix.py",
    Kind.BREAKER: "tests/e2e/test_enrol.py",
    Kind.CROSSPLANE_AWAY: "tests/e2e/test_deletion_matrix.py",
    Kind.BLUEPRINT_GONE: "tests/e2e/test_bad_input.py",
    Kind.NAMESPACE_NOT_READY: "tests/e2e/test_runbook_provisioning.py",
    Kind.POLICIES_GONE: "tests/contract/test_reviews.py",
    Kind.CLOCK_SKEW: "tests/contract/test_token_issuer.py",
    Kind.NODES_CUT_OFF: "tests/integration/load/test_postgres_restart.py",
    Kind.CLOUD_SLOW: "tests/integration/load/test_stuck_nodes.py",
    Kind.CREATE_FAILS: "tests/e2e/test_runbook_provisioning.py",
    Kind.TWICE_CREATED: "tests/contract/test_arrivals.py",
    Kind.DELETE_HANGS: "tests/e2e/test_runbook_deletion.py",
    Kind.FLAPS: "tests/unit/reconciler/app/test_tick.py",
    Kind.AGENT_DEAD: "tests/e2e/test_registration_timeout.py",
    Kind.AGENT_REPLY_LOST: "tests/contract/test_enrolment.py",
    Kind.AGENT_CLONED: "tests/contract/test_arrivals.py",
    Kind.AGENT_SLOW: "tests/integration/http/test_late_and_early.py",
    Kind.DELETE_BACKGROUND: "tests/e2e/test_deletion_matrix.py",
    Kind.DELETE_FOREGROUND: "tests/e2e/test_deletion_matrix.py",
    Kind.DELETE_ORPHAN: "tests/e2e/test_deletion_matrix.py",
    Kind.DELETE_RECORD: "tests/e2e/test_deletion_matrix.py",
    Kind.STRIP_FINALIZER: "tests/e2e/test_deletion_matrix.py",
    Kind.BREAK_GLASS: "tests/e2e/test_protection.py",
    Kind.PAUSE_XR: "tests/e2e/test_protection.py",
    Kind.EDIT: "tests/faults/catalogue/test_f66_f67_edits.py",
    Kind.RETRY: "tests/integration/lives/test_retry.py",
}
