"""A namespace deleted under enrolled nodes: what they hold stays until the last is out and gone.

Faults hold the teardown at each of its steps, so that what must still be there can be looked
at: a trigger in Postgres keeps one node in the mesh, the demo cloud lets deletions hang.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator

import asyncpg
import pytest

from dev.kube import RefusedError
from dev.stack import Stack
from tests.e2e import enrol_world
from tests.e2e.conftest import DELAYS
from tests.e2e.deploy.identity import BREAK_GLASS, Caller
from tests.e2e.enrol_pool import Pool, assert_same, held
from tests.e2e.enrol_world import ENTRY, LONG
from tests.e2e.test_force_release import KEEP, LET_GO
from tests.e2e.world import API, CLOUD_API, Object, condition_of, namespace_went, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

PIPELINES = (0.0, *DELAYS) if LONG else (max(DELAYS),)
HANGS = {"demo-delete": "hang"}
NEVER = {**HANGS, "demo-boot": "never"}
NOBODY = ""
SLOW_S = 200.0
"""The namespace controller backs off while something is held."""


@pytest.fixture(scope="module")
def kinds(stack: Stack) -> Stack:
    """The team's kind, with a Composition for each pipeline."""
    enrol_world.install(
        stack,
        *(
            enrol_world.composition(enrol_world.slowed(delay_s), [ENTRY], delay_s=delay_s)
            for delay_s in PIPELINES
        ),
    )
    return stack


@pytest.fixture(scope="module")
def pools(kinds: Stack) -> dict[tuple[float, bool], Pool]:
    """Make a pool of two for each case at once, by delay and whether its nodes come.

    Each has a Project of its own, because its namespace will go.
    """
    return {
        (delay_s, came): _made(kinds, delay_s, HANGS if came else NEVER)
        for delay_s in PIPELINES
        for came in (True, False)
    }


def _made(stack: Stack, delay_s: float, labels: Object) -> Pool:
    identity = str(uuid.uuid4())
    namespace = f"plexsphere-project-{identity}"
    stack.plane.apply(
        {
            "apiVersion": API,
            "kind": "Project",
            "metadata": {"name": f"enrol-{identity}"},
            "spec": {"id": identity, "domainRef": {"name": "acme"}},
        }
    )
    wait_for(lambda: stack.plane.cluster.get("v1", "Namespace", namespace), namespace)
    pool = Pool(stack, "doomed", namespace=namespace)
    return pool.apply(2, composition=enrol_world.slowed(delay_s), labels=labels)


@pytest.fixture
def mesh(kinds: Stack) -> Iterator[Callable[[str], None]]:
    """Make the mesh keep one node, or nobody."""

    def keep(handle: str) -> None:
        kept = KEEP.format(resource=handle.removeprefix("pr-"))
        _execute(kinds, LET_GO if handle == NOBODY else kept)

    yield keep
    keep(NOBODY)


def _execute(stack: Stack, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(stack.postgres.dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


@pytest.mark.parametrize("delay_s", PIPELINES)
def test_what_nodes_hold_stays_until_the_last_machine_of_a_deleted_namespace_is_gone(
    pools: dict[tuple[float, bool], Pool], mesh: Callable[[str], None], delay_s: float
) -> None:
    pool = pools[delay_s, True]
    stays, leaves = pool.until_ready("node-0", "node-1", timeout_s=SLOW_S)
    machine, other, network = _machine(pool, stays), _machine(pool, leaves), pool.network()
    mesh(stays)

    _delete_namespace(pool)

    wait_for(
        lambda: (
            _reason(pool, "node-0", "Ready") == "NodeDeregistrationFailed"
            and "delete-requested" in pool.cloud(leaves)
        ),
        "one node out and one that stays",
        explain=pool.explain,
    )
    wait_for(lambda: _refused(pool), "the namespace's content refused", timeout_s=SLOW_S)
    pool.assert_untouched(stays, machine)
    assert_same(pool.network(), network)
    assert held(pool.network())

    mesh(NOBODY)
    wait_for(
        lambda: "delete-requested" in pool.cloud(stays),
        "the other node out too",
        timeout_s=SLOW_S,
        explain=pool.explain,
    )
    _lift(pool, other)
    wait_for(
        lambda: pool.machine(leaves) is None and pool.record("node-1") is None,
        f"{leaves} and its record gone",
        timeout_s=SLOW_S,
        explain=pool.explain,
    )
    assert_same(pool.network(), network)
    assert held(pool.network())

    _lift(pool, machine)
    _until_namespace_gone(pool)
    for handle in (stays, leaves):
        pool.assert_drained(handle)


@pytest.mark.parametrize("delay_s", PIPELINES)
def test_nodes_that_never_came_leave_a_deleted_namespace_in_the_same_order(
    pools: dict[tuple[float, bool], Pool], delay_s: float
) -> None:
    pool = pools[delay_s, False]
    handles = pool.until_enrolling("node-0", "node-1", timeout_s=SLOW_S)
    machines, network = [_machine(pool, handle) for handle in handles], pool.network()

    _delete_namespace(pool)

    wait_for(
        lambda: all("delete-requested" in pool.cloud(handle) for handle in handles),
        "both machines asked to go",
        timeout_s=SLOW_S,
        explain=pool.explain,
    )
    assert_same(pool.network(), network)
    assert held(pool.network())
    for machine in machines:
        _lift(pool, machine)
    _until_namespace_gone(pool)
    for handle in handles:
        pool.assert_drained(handle, registered=False)


def _delete_namespace(pool: Pool) -> None:
    """Delete a namespace as a person may who gets past its hold."""
    wait_for(lambda: _count(pool) == "2", "both records counted")
    with pytest.raises(RefusedError, match="it holds 2 ProvisioningRecords"):
        pool.cluster.delete("v1", "Namespace", pool.namespace)
    glass = Caller(pool.stack.plane.kubeconfig).as_user("jane", BREAK_GLASS)

    answer = glass.delete(f"/api/v1/namespaces/{pool.namespace}")

    assert answer.ok, answer.message


def _count(pool: Pool) -> str:
    """Return how many records its namespace says that it holds."""
    namespace = pool.cluster.get("v1", "Namespace", pool.namespace) or {}
    annotations = namespace.get("metadata", {}).get("annotations") or {}
    return str(annotations.get("provisioning.plexsphere.com/records", ""))


def _refused(pool: Pool) -> bool:
    """Tell whether the namespace controller has tried to delete what is held."""
    namespace = pool.cluster.get("v1", "Namespace", pool.namespace)
    failed = condition_of(namespace, "NamespaceDeletionContentFailure")
    return "is forbidden" in str(failed.get("message"))


def _until_namespace_gone(pool: Pool) -> None:
    wait_for(
        lambda: namespace_went(pool.stack, pool.namespace),
        "the namespace gone",
        timeout_s=SLOW_S,
        explain=lambda: f"{pool.left()} {pool.explain()}",
    )


def _lift(pool: Pool, machine: Object) -> None:
    """Let the demo cloud go on with a deletion that hangs."""
    lifted = {"cloud.demo.plexsphere.com/delete": "lifted"}
    name = machine["metadata"]["name"]
    metadata = {"name": name, "namespace": pool.namespace, "annotations": lifted}
    pool.cluster.apply({"apiVersion": CLOUD_API, "kind": "Machine", "metadata": metadata})


def _machine(pool: Pool, handle: str) -> Object:
    found = pool.machine(handle)
    assert found is not None
    return found


def _reason(pool: Pool, resource: str, condition: str) -> str:
    return str(condition_of(pool.record(resource), condition).get("reason", ""))
