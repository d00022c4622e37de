"""Machines whose nodes do not come, under the policy Recreate, on a real control plane.

All wait out the shortest timeout at once, so the tests share one start.
"""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg
import pytest

from dev import facts
from dev.facts import Fact
from dev.kube import RefusedError
from dev.stack import Stack
from function.contract import names
from tests.e2e import enrol_world
from tests.e2e.conftest import DELAYS, LONG, delayed
from tests.e2e.enrol_pool import Pool, assert_same, held
from tests.e2e.enrol_world import ENTRY
from tests.e2e.world import API, PROJECT, Node, Object, condition_of, wait_for
from tests.simulation import evidence
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

ONCE: Final = "recreated-once-v1alpha1"
POOL: Final = "pool-recreated"
NEVER: Final = {"demo-boot": "never"}
BOOTS: Final = {"team": "checkout"}
DUE_S: Final = 240.0
"""The shortest timeout is a minute; then a sweep, a deletion and a boot on a loaded machine."""


MOMENTS: Final[dict[str, Callable[[Object], bool]]] = {
    "torn-absent": lambda record: _substrate(record) == "Absent",
    "torn-acknowledged": lambda record: (
        _substrate(record) == "Absent" and record["spec"].get("released") is True
    ),
    "torn-present": lambda record: (
        _substrate(record) == "Present" and record["spec"].get("released") is True
    ),
    "torn-anew": lambda record: record["status"]["bootstrap"]["generation"] == 2,
}
"""When somebody deletes a record by hand: on the way out, between, and on the way back."""

TORN: Final = tuple(MOMENTS) if LONG else ("torn-acknowledged",)
"""One in `make test`, where the machine is going; `make test-long` has all."""


@dataclass
class Started:
    """What every test of this file waits for at once."""

    late: Node
    silent: Node
    pool: Pool
    torn: dict[str, Node]
    handles: dict[str, str] = field(default_factory=dict)
    machines: dict[str, Object] = field(default_factory=dict)


@pytest.fixture(scope="module")
def started(stack: Stack) -> Started:
    registration = {"policy": "Recreate", "timeout": "1m", "attempts": 1}
    blueprint = stack.plane.cluster.get(API, "BlueprintVersion", "generic-vm-v1alpha1")
    assert blueprint is not None
    spec = {**blueprint["spec"], "slug": "recreated-once", "registration": registration}
    stack.plane.apply(
        {"apiVersion": API, "kind": "BlueprintVersion", "metadata": {"name": ONCE}, "spec": spec}
    )
    entry = {**ENTRY, "registration": registration}
    enrol_world.install(stack, enrol_world.composition(POOL, [entry]))
    made = Started(
        late=Node(stack, "late", blueprint=ONCE, labels=NEVER).apply(),
        silent=Node(stack, "silent", blueprint=ONCE, labels=NEVER).apply(),
        pool=Pool(stack, "pooled").apply(1, composition=POOL, labels=NEVER),
        torn={
            name: Node(
                stack, name, blueprint=ONCE, labels=NEVER, composition=delayed(max(DELAYS))
            ).apply()
            for name in TORN
        },
    )
    for node in (made.late, made.silent, *made.torn.values()):
        made.handles[node.name] = node.until_enrolling()
        made.machines[node.name] = _found(node.machine(node.handle()))
    _register(stack, made.silent)
    (made.handles["pool"],) = made.pool.until_enrolling("node-0")
    made.machines["pool"] = _found(made.pool.machine(made.handles["pool"]))
    made.machines["network"] = made.pool.network()
    # A machine that runs stays as it is; the next one boots.
    for node in (made.silent, *made.torn.values()):
        _edit(node, labels={})
    made.pool.apply(1, composition=POOL, labels=BOOTS)
    _delete_by_hand(made.torn)
    return made


def _delete_by_hand(nodes: dict[str, Node]) -> None:
    """Delete records each in its moment, of which some last no longer than a pipeline run."""
    waiting = dict(nodes)

    def deleted() -> bool:
        for name, node in list(waiting.items()):
            if MOMENTS[name](_found(node.record())):
                node.delete_record()
                del waiting[name]
        return not waiting

    wait_for(deleted, "every moment", timeout_s=DUE_S, explain=lambda: str(sorted(waiting)))


def test_a_machine_whose_node_never_comes_is_made_anew_as_often_as_allowed(
    started: Started,
) -> None:
    node, handle = started.late, started.handles["late"]
    old = started.machines["late"]
    evidence.made(Kind.AGENT_DEAD)

    second = _until_anew(node, handle, old)

    assert node.handle() == handle
    assert _generation(node) == 2
    _assert_ordered(_told(node.stack, handle), "token revoked")
    node.assert_ordered(handle, registered=False)
    assert _audited(node.stack, handle) == ["recreate"]
    assert _events(node, "Recreating")

    wait_for(
        lambda: _stalled(node.record()) == "RecreationsExhausted",
        "no attempt left",
        timeout_s=DUE_S,
        explain=node.explain,
    )
    assert_same(node.machine(handle), second)

    _edit(node, retry=1, labels={})

    _until_anew(node, handle, second)
    assert node.until_ready(timeout_s=DUE_S) == handle
    assert _generation(node) == 3
    assert _audited(node.stack, handle) == ["recreate", "retry", "recreate"]
    node.delete(propagation="Background")
    node.until_gone(handle)
    node.assert_nothing_left(handle)


def test_a_node_that_never_reported_leaves_before_its_machine_is_made_anew(
    started: Started,
) -> None:
    node, handle = started.silent, started.handles["silent"]

    _until_anew(node, handle, started.machines["silent"])

    _assert_ordered(_told(node.stack, handle), "deregistered")
    node.assert_ordered(handle, registered=True)
    assert node.until_ready(timeout_s=DUE_S) == handle
    assert _generation(node) == 2
    assert _audited(node.stack, handle) == ["recreate"]


def test_an_enrolled_machine_is_made_anew_beside_what_it_holds(started: Started) -> None:
    pool, handle = started.pool, started.handles["pool"]
    old = started.machines["pool"]

    wait_for(
        lambda: _is_another(pool.machine(handle), old),
        "another machine",
        timeout_s=DUE_S,
        explain=pool.explain,
    )

    assert pool.handle("node-0") == handle
    assert_same(pool.network(), started.machines["network"])
    assert held(pool.network())
    _assert_ordered(_told(pool.stack, handle), "token revoked")
    assert pool.until_ready("node-0", timeout_s=DUE_S) == [handle]
    pool.delete("Background")
    pool.until_gone()


@pytest.mark.parametrize("moment", TORN)
def test_a_record_deleted_by_hand_in_mid_recreation_leaves_nothing_and_is_replaced(
    started: Started, moment: str
) -> None:
    node, handle = started.torn[moment], started.handles[moment]

    wait_for(
        lambda: node.handle() not in ("", handle), "a new id", timeout_s=DUE_S, explain=node.explain
    )
    assert node.until_ready(timeout_s=DUE_S) != handle

    node.assert_aggregate_deleted(handle)
    node.assert_created_once(node.handle())
    cloud = [fact.what for fact in _told(node.stack, handle) if fact.source == "cloud"]
    assert cloud.count("created") == cloud.count("deleted") > 0
    assert node.machine(handle) is None
    assert node.substrate(handle) is None
    assert _audited(node.stack, handle) == ["recreate"]


def _until_anew(node: Node, handle: str, old: Object) -> Object:
    """Wait until there is another machine of the same name; return it."""
    wait_for(
        lambda: _is_another(node.machine(handle), old),
        f"another machine of {node.name}",
        timeout_s=DUE_S,
        explain=node.explain,
    )
    return _found(node.machine(handle))


def _is_another(machine: Object | None, old: Object) -> bool:
    return machine is not None and machine["metadata"]["uid"] != old["metadata"]["uid"]


def _found(machine: Object | None) -> Object:
    assert machine is not None
    return machine


def _register(stack: Stack, node: Node) -> None:
    """Enrol a node whose machine does not, and say nothing afterwards."""
    record = node.record()
    assert record is not None
    secret = record["status"]["bootstrap"]["secretRef"]["name"]
    found = stack.plane.cluster.get("v1", "Secret", secret, node.namespace)
    assert found is not None
    body = {
        "project_id": PROJECT.removeprefix("plexsphere-project-"),
        "resource_handle": node.handle(),
        "bootstrap_token": base64.b64decode(found["data"][names.TOKEN_SECRET_KEY]).decode(),
        "nonce": "silent",
        "public_key": base64.b64encode(b"\x11" + bytes(range(31))).decode(),
    }
    request = urllib.request.Request(  # noqa: S310 - our own listener
        f"{stack.node_url}/v1/register",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        assert answer.status == 201


def _edit(node: Node, **changes: Any) -> None:
    """Change an XR's spec, whoever writes it meanwhile."""

    def written() -> bool:
        xr = _found(node.xr())
        xr["spec"] = {**xr["spec"], **changes}
        try:
            node.cluster.replace(xr)
        except RefusedError as error:
            if error.status != 409:
                raise
            return False
        return True

    wait_for(written, f"{node.name} edited")


def _generation(node: Node) -> int:
    record = node.record()
    assert record is not None
    return int(record["status"]["bootstrap"]["generation"])


def _substrate(record: Object) -> str:
    return str((record.get("status") or {}).get("substrate", ""))


def _stalled(record: Object | None) -> str:
    stalled = condition_of(record, "Stalled")
    return str(stalled.get("reason", "")) if stalled.get("status") == "True" else ""


def _told(stack: Stack, handle: str) -> list[Fact]:
    told = [*facts.from_postgres(stack.postgres.dsn), *facts.from_cloud(stack.cloud_root)]
    return sorted(fact for fact in told if fact.subject == handle)


def _assert_ordered(told: list[Fact], out: str) -> None:
    """Assert that nobody could enrol any more before the first machine was asked to go."""
    moments = {fact.what: fact.at for fact in reversed(told)}
    assert moments[out] < moments["delete-requested"], told
    gone, cloud = moments["deleted"], [fact for fact in told if fact.source == "cloud"]
    issued = [fact.at for fact in told if fact.what == "token issued"]
    assert len([at for at in issued if at < gone]) == 1, told
    assert gone < issued[1] < [fact.at for fact in cloud if fact.what == "created"][1], told


def _audited(stack: Stack, handle: str) -> list[str]:
    return asyncio.run(_audit(stack.postgres.dsn, handle))


async def _audit(dsn: str, handle: str) -> list[str]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            """
            SELECT action FROM plexsphere.broker_audit a
            JOIN plexsphere.provisioned_resources r ON r.id = a.provisioned_resource_id
            WHERE r.xr_name = $1 ORDER BY a.at
            """,
            handle,
        )
    finally:
        await connection.close()
    return [row["action"] for row in rows]


def _events(node: Node, reason: str) -> list[str]:
    found = node.cluster.list("v1", "Event", node.namespace)
    return [
        item["metadata"]["creationTimestamp"]
        for item in found
        if item["reason"] == reason and item["involvedObject"]["name"] == node.name
    ]
