"""`docs/runbooks/provisioning.md`: each entry's symptom is made, and its commands are run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import asyncpg
import pytest

from dev.stack import Stack
from function.contract import names
from tests.e2e import runbook
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.kstatus import kstatus
from tests.e2e.world import (
    API,
    CLOUD_API,
    SUBSTRATE_API,
    Node,
    Object,
    condition_of,
    wait_for,
)
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PAGE: Final = "provisioning"
SECOND_LIFE_S: Final = 250.0
"""A second life may take what is left in the XR's breaker, and then waits for its next poll."""
UNPLACED: Final = "0197b1a2-7c3d-7e4f-8a5b-0000000000e1"
SCENES: Final[dict[str, tuple[dict[str, str], str]]] = {
    "hanging": ({"demo-create": "hang"}, "Provisioning"),
    "late": ({"demo-create": "refuse"}, "Provisioning"),
    "failing": ({"demo-create": "fail"}, "Failed"),
    "silent": ({"demo-boot": "never"}, "Enrolling"),
    "lost": ({}, "Ready"),
}
"""Nodes by what goes wrong with them: their labels, and the phase in which they stand then."""

Scenes = dict[str, Node]


@pytest.fixture(scope="module")
def glass(stack: Stack) -> Caller:
    return Caller(stack.plane.kubeconfig).as_user("jane", BREAK_GLASS, MASTERS)


@pytest.fixture(scope="module")
def scenes(stack: Stack) -> Iterator[Scenes]:
    nodes = {
        name: Node(stack, f"rb-{name}", labels=labels).apply()
        for name, (labels, _) in SCENES.items()
    }

    def until(name: str) -> None:
        node, phase = nodes[name], SCENES[name][1]
        wait_for(lambda: node.phase() == phase, f"{node.name} {phase}", explain=node.explain)

    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(until, nodes))
    yield nodes
    for node in nodes.values():
        node.delete(propagation="Background")
    for node in nodes.values():
        wait_for(lambda node=node: node.record() is None, f"{node.name} gone")  # type: ignore[misc]  # mypy cannot type a default in a lambda


def _object(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _reason(node: Node, kind: str) -> str:
    return str(condition_of(node.record(), kind).get("reason", ""))


def _until_kstatus(node: Node, wanted: str) -> None:
    """Wait until the XR says to other people's tools what its record says."""
    wait_for(lambda: kstatus(node.xr()) == wanted, f"{node.name} {wanted}", explain=node.explain)


def _warned(node: Node) -> set[str]:
    """Return the reasons of the warnings on an XR."""
    xr = node.xr()
    assert xr is not None
    events = node.cluster.list("v1", "Event", node.namespace)
    own = [item for item in events if item["involvedObject"].get("uid") == xr["metadata"]["uid"]]
    return {item["reason"] for item in own if item["type"] == "Warning"}


def _mend_the_labels(node: Node) -> None:
    """Take the fault out of a declaration, as a commit would, until it is accepted."""
    # Server-side apply cannot take the last of our labels off: it would leave a null.
    node.labels = {"mended": "yes"}
    node.apply()

    def accepted() -> bool:
        status = (node.record() or {}).get("status") or {}
        return bool((status.get("accepted") or {}).get("labels") == node.labels)

    wait_for(accepted, f"{node.name} accepted as it is now", explain=node.explain)


def test_entry_1_what_is_missing_is_named_and_nothing_is_declared_again(stack: Stack) -> None:
    namespace = f"plexsphere-project-{UNPLACED}"
    vault = {"mount": "kv", "path": "acme/rb-unplaced"}
    stack.plane.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        _object("Project", "rb-unplaced", id=UNPLACED, domainRef={"name": "rb-domain"}),
        _object(
            "CloudCredential",
            "rb-unplaced",
            cloudRef={"name": "demo"},
            vault=vault,
            projects=["rb-unplaced"],
        ),
    )
    node = Node(stack, "rb-pending", namespace=namespace, credential="rb-unplaced").apply()
    wait_for(lambda: _reason(node, "Admitted") == "ProjectNotFound", "the refusal")
    page = runbook.entry(PAGE, "1.")

    told = runbook.follow(stack, node, page, "Diagnose")
    assert '"reason":"ProjectNotFound"' in told
    assert "spec.domainRef: Domain 'rb-domain' not found" in told
    answer = runbook.why(stack, node)
    assert (answer["reason"], answer["runbook"]) == ("ProjectNotFound", "provisioning.md, entry 1")
    _until_kstatus(node, "Failed")
    stack.plane.apply(_object("Domain", "rb-domain", meshCIDR="100.96.0.0/16"))

    handle = node.until_ready()
    node.delete(propagation="Background")
    node.until_gone(handle)


def test_entry_2_a_provider_that_hangs_is_seen_one_level_deeper(
    stack: Stack, scenes: Scenes, glass: Caller
) -> None:
    node = scenes["hanging"]
    handle = node.handle()
    assert condition_of(node.record(), "Stalled")["status"] == "False"

    told = runbook.follow(stack, node, runbook.entry(PAGE, "2."), "Diagnose")
    assert f"Machine {handle}" in told
    made(Kind.CLOUD_SLOW)
    answer = runbook.why(stack, node)
    assert answer["culprit"] == f"Machine/{handle}"
    assert answer["runbook"] == "provisioning.md, entry 2"
    assert kstatus(node.xr()) == "InProgress"
    path = f"/apis/{CLOUD_API}/namespaces/{node.namespace}/machines/{handle}"
    mended = {"metadata": {"annotations": {"cloud.demo.plexsphere.com/create": "works"}}}
    assert glass.patch(path, mended).ok

    assert node.until_ready(timeout_s=SECOND_LIFE_S) == handle


def test_entry_3_a_failed_one_starts_over_under_its_id(stack: Stack, scenes: Scenes) -> None:
    node = scenes["failing"]
    handle = node.handle()
    page = runbook.entry(PAGE, "3.")
    assert condition_of(node.record(), "Stalled")["status"] == "True"

    told = runbook.follow(stack, node, page, "Diagnose")
    assert told == condition_of(node.xr(), "ProvisioningFailed")["message"]
    answer = runbook.why(stack, node)
    assert answer["culprit"] == f"Machine/{handle}"
    assert (answer["actor"], answer["runbook"]) == ("AUTHOR", "provisioning.md, entry 3")
    _until_kstatus(node, "Failed")
    made(Kind.CREATE_FAILS)
    node.until_earned()
    _mend_the_labels(node)
    wait_for(lambda: not _tags(node, handle), "the machine's tags as declared now")
    assert node.phase() == "Failed"
    runbook.follow(stack, node, page, "Fix", CHILD=f"machine/{handle}", ADMINS=MASTERS)

    assert node.until_ready(timeout_s=SECOND_LIFE_S) == handle


def _tags(node: Node, handle: str) -> bool:
    machine = node.machine(handle)
    return "demo-create" in ((machine or {})["spec"]["forProvider"].get("tags") or {})


def test_entry_4_readiness_names_what_is_away(stack: Stack) -> None:
    page = runbook.entry(PAGE, "4.")

    with stack.postgres.down(signal.SIGINT):
        told = _probes(stack, page, "[-]postgres failed")
    assert "[+]management-cluster ok" in told

    _probes(stack, page, "[+]postgres ok\n[+]provisioning-broker-reconcile ok")


def _probes(stack: Stack, page: runbook.Entry, wanted: str) -> str:
    """Follow the page until it says something; return all that it says."""

    def told() -> str | None:
        said = runbook.run(stack, page.commands("Diagnose"), {})
        return said if wanted in said else None

    return str(wait_for(told, wanted))


def test_entry_5_a_machine_that_never_registers_is_replaced(stack: Stack, scenes: Scenes) -> None:
    node = scenes["silent"]
    handle = node.handle()
    page = runbook.entry(PAGE, "5.")

    told = runbook.follow(stack, node, page, "Diagnose")
    assert told.split() == ["True", "Issued", "WaitingForRegistration"]
    answer = runbook.why(stack, node)
    assert (answer["actor"], answer["runbook"]) == ("MACHINE", "provisioning.md, entry 5")
    assert kstatus(node.xr()) == "InProgress"
    node.until_earned()
    _mend_the_labels(node)
    runbook.follow(stack, node, page, "Fix")

    wait_for(lambda: node.handle() not in ("", handle), "a fresh record", explain=node.explain)
    assert node.until_ready(timeout_s=SECOND_LIFE_S) != handle
    node.assert_aggregate_deleted(handle)


def test_entry_6_a_lost_substrate_comes_back_when_a_person_says_so(
    stack: Stack, scenes: Scenes, glass: Caller
) -> None:
    node = scenes["lost"]
    handle = node.handle()
    lost = _node_id(node)
    node.until_earned()
    path = f"/apis/{SUBSTRATE_API}/namespaces/{node.namespace}/xgenericvms/{handle}"
    # A pipeline run in flight would make it again before anybody misses it.
    _pause(node, glass, paused="true")
    made(Kind.PAUSE_XR)
    assert glass.delete(path, propagationPolicy="Foreground").ok
    wait_for(lambda: node.substrate(handle) is None, "the substrate gone")
    _pause(node, glass, paused=None)
    wait_for(lambda: _reason(node, "Stalled") == "SubstrateLost", "the loss", explain=node.explain)
    page = runbook.entry(PAGE, "6.")

    told = runbook.follow(stack, node, page, "Diagnose")
    assert "Increment spec.retry" in told
    answer = runbook.why(stack, node)
    assert (answer["reason"], answer["runbook"]) == ("SubstrateLost", "provisioning.md, entry 6")
    _until_kstatus(node, "Failed")
    assert "SubstrateLost" in _warned(node)
    assert node.substrate(handle) is None
    runbook.follow(stack, node, page, "Fix")

    wait_for(lambda: _node_id(node) not in ("", lost), "another node", explain=node.explain)
    # Two machines within two minutes may cost the XR its breaker, and it says so later.
    wait_for(lambda: node.phase() == "Ready", "the record Ready", explain=node.explain)
    assert node.handle() == handle


def _pause(node: Node, glass: Caller, *, paused: str | None) -> None:
    path = f"/apis/{API}/namespaces/{node.namespace}/provisionedresources/{node.name}"
    assert glass.patch(path, {"metadata": {"annotations": {names.PAUSED: paused}}}).ok


def _node_id(node: Node) -> str:
    status = (node.record() or {}).get("status") or {}
    return str((status.get("node") or {}).get("id", ""))


NO_ROOM: Final = (
    "cannot create machine: no room for instance type 'standard-2' in region 'nbg1' just now"
)
DUE_FOR_LONG: Final = """
UPDATE plexsphere.provisioned_resources
SET provisioning_since = provisioning_since - interval '1 hour' WHERE xr_name = $1
"""


async def _pass_an_hour(dsn: str, handle: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(DUE_FOR_LONG, handle)
    finally:
        await connection.close()


def test_entry_7_a_substrate_that_is_late_says_what_it_lacks_and_may_still_come(
    stack: Stack, scenes: Scenes, glass: Caller
) -> None:
    node = scenes["late"]
    handle = node.handle()
    assert condition_of(node.record(), "Stalled")["status"] == "False"

    asyncio.run(_pass_an_hour(stack.postgres.dsn, handle))
    wait_for(
        lambda: _late(node) == "ProvisioningTimeout",
        "what it lacks, on its XR",
        explain=node.explain,
    )
    told = runbook.follow(stack, node, runbook.entry(PAGE, "7."), "Diagnose")
    lowest, reason = told.splitlines()
    assert lowest.startswith(
        f"The substrate exists but is not ready after 30 min. Machine {handle!r}"
    )
    assert lowest.endswith(f"Synced is False (ReconcileError): {NO_ROOM}")
    assert reason == "ProvisioningTimeout"
    answer = runbook.why(stack, node)
    assert (answer["culprit"], answer["explanation"]) == (f"Machine/{handle}", NO_ROOM)
    assert answer["runbook"] == "provisioning.md, entry 7"
    _until_kstatus(node, "Failed")
    assert "ProvisioningTimeout" in _warned(node)
    assert condition_of(node.record(), "Stalled")["status"] == "True"
    assert condition_of(node.xr(), "ProvisioningFailed")["status"] == "False"
    path = f"/apis/{CLOUD_API}/namespaces/{node.namespace}/machines/{handle}"
    mended = {"metadata": {"annotations": {"cloud.demo.plexsphere.com/create": "works"}}}
    assert glass.patch(path, mended).ok

    assert node.until_ready(timeout_s=SECOND_LIFE_S) == handle
    assert condition_of(node.record(), "Stalled")["status"] == "False"
    _until_kstatus(node, "Current")


def _late(node: Node) -> str:
    return str(condition_of(node.xr(), "ProvisioningFailed").get("reason", ""))
