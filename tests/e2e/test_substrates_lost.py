"""Substrates that go under live nodes: one that comes again by itself, and many at once."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from dev.stack import Stack
from tests.e2e import runbook
from tests.e2e.conftest import DELAY_FUNCTION, DELAYS, MakeNode, delayed
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.world import API, SUBSTRATE_API, Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MANY: Final = 4
"""One more than what a person does by hand."""

REQUEST_TIMEOUT_S: Final = 10.0
THAW: Final = 'broker thaw --management-cluster local --reason "INC-42: the zone is lost"'


Pool = list[tuple[Node, str]]
"""Nodes that are Ready, each with its handle."""


@pytest.fixture
def glass(stack: Stack) -> Caller:
    return Caller(stack.plane.kubeconfig).as_user("jane", BREAK_GLASS, MASTERS)


def _path(node: Node, handle: str) -> str:
    return f"/apis/{SUBSTRATE_API}/namespaces/{node.namespace}/xgenericvms/{handle}"


def _take(glass: Caller, node: Node, handle: str) -> None:
    """Delete a substrate as break-glass may, without waiting for those that hold it."""
    path, own = _path(node, handle), _uid(node, handle)
    assert glass.delete(path, propagationPolicy="Background").ok
    bare = {"metadata": {"uid": own, "finalizers": None}}

    def gone() -> bool:
        glass.patch(path, bare)
        return _uid(node, handle) != own

    wait_for(gone, "it gone, or another one there", explain=node.explain)


def _reason(node: Node, kind: str) -> str:
    return str(condition_of(node.record(), kind).get("reason", ""))


def _until_lost(node: Node) -> None:
    wait_for(
        lambda: _reason(node, "Stalled") == "SubstrateLost",
        f"the loss of {node.name}",
        explain=node.explain,
    )


def _uid(node: Node, handle: str) -> str:
    return str(((node.substrate(handle) or {}).get("metadata") or {}).get("uid", ""))


def _whats(node: Node, handle: str) -> list[str]:
    return [fact.what for fact in node.facts(handle)]


def _until_in_flight(stack: Stack, node: Node) -> None:
    """Make Crossplane run the slow pipeline, and return while it does."""
    log = stack.run_dir / "logs" / f"{DELAY_FUNCTION}.log"

    def runs() -> int:
        return log.read_text(encoding="utf-8").count(f"delaying {node.name}\n")

    before = runs()
    poked = {"metadata": {"annotations": {"tests.plexsphere.com/poke": str(before)}}}
    admin = Caller(stack.plane.kubeconfig)
    path = f"/apis/{API}/namespaces/{node.namespace}/provisionedresources/{node.name}"
    assert admin.patch(path, poked).ok
    wait_for(lambda: runs() > before, "a run in flight", explain=node.explain)


def test_one_that_a_run_in_flight_makes_again_is_not_the_nodes(
    stack: Stack, make_node: MakeNode, glass: Caller
) -> None:
    node = make_node(composition=delayed(max(DELAYS))).apply()
    handle = node.until_ready()
    node.until_still()
    own = _uid(node, handle)

    _until_in_flight(stack, node)
    _take(glass, node, handle)
    wait_for(lambda: _uid(node, handle) not in ("", own), "another one", explain=node.explain)

    _until_lost(node)
    wait_for(lambda: node.phase() == "Pending", "no machine of its node", explain=node.explain)
    wait_for(
        lambda: condition_of(node.xr(), "Ready").get("status") == "False",
        "an XR that is not Ready",
        explain=node.explain,
    )
    assert "deregistered" not in _whats(node, handle)

    node.delete(propagation="Background")

    node.until_gone(handle)
    node.assert_nothing_left(handle)
    told = node.facts(handle)
    (out,) = (fact.at for fact in told if fact.what == "deregistered")
    last = max(fact.at for fact in told if fact.what == "delete-requested")
    assert out < last, told
    whats = _whats(node, handle)
    assert whats.count("created") == whats.count("deleted"), told


@pytest.fixture(scope="module", autouse=True)
def pool(stack: Stack) -> Iterator[Pool]:
    """Make nodes that are Ready, and take them down afterwards."""
    nodes = [Node(stack, f"lost-{number}") for number in range(MANY)]
    with ThreadPoolExecutor(max_workers=MANY) as workers:
        handles = list(workers.map(lambda node: node.apply().until_ready(), nodes))
    made = list(zip(nodes, handles, strict=True))
    yield made
    for node, _ in made:
        node.delete(propagation="Background")
    for node, handle in made:
        node.until_gone(handle)


def _frozen(stack: Stack) -> bool:
    metrics = f"{stack.operator_url}/metrics"
    with urllib.request.urlopen(metrics, timeout=REQUEST_TIMEOUT_S) as answer:  # noqa: S310 - our own listener
        text = answer.read().decode()
    return any(
        line.startswith("plexsphere_frozen{") and "SubstratesLost" in line and line.endswith(" 1.0")
        for line in text.splitlines()
    )


def test_many_at_once_freeze_until_a_person_says_that_it_is_true(
    stack: Stack, make_node: MakeNode, glass: Caller, pool: Pool
) -> None:
    for node, _ in pool:
        # Two machines within two minutes may cost an XR its breaker, and it says so later.
        node.until_earned()
    with ThreadPoolExecutor(max_workers=MANY) as workers:
        list(workers.map(lambda one: _take(glass, *one), pool))
    with ThreadPoolExecutor(max_workers=MANY) as workers:
        list(workers.map(lambda one: _until_lost(one[0]), pool))
    wait_for(lambda: _frozen(stack), "a frozen cluster")
    newcomer = make_node().apply()
    wait_for(lambda: _reason(newcomer, "Ready") == "Frozen", "Frozen", explain=newcomer.explain)
    assert all("deregistered" not in _whats(node, handle) for node, handle in pool)
    assert newcomer.substrate(newcomer.handle()) is None

    runbook.run(stack, THAW, {})

    handle = newcomer.until_ready()
    assert not _frozen(stack)
    assert all("deregistered" not in _whats(node, handle) for node, handle in pool)
    newcomer.delete(propagation="Background")
    newcomer.until_gone(handle)
