"""The product installed from packages, and its Function upgraded under running nodes."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dev import revisions
from dev.kube import RefusedError
from dev.packages import FUNCTION, Release
from dev.stack import FUNCTION_NAME, ROOT
from tests.e2e.packaged import PACKAGE_API, PackagedStack
from tests.e2e.world import PROJECT, Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

TOUCH_PAUSE_S = 0.1
"""Each touch is a reconcile: some ten a second of each XR over the whole upgrade."""

CALLS_ENOUGH = 20
"""Of the new version while the old XRs are touched: more than one node's life."""

ONE_RETRY = 1
"""Per XR: a call that is on its way when core changes the endpoint is cut off."""

TOUCHED = "tests.plexsphere.com/touched"
_numbers = itertools.count(1)
MakeNode = Callable[[], Node]


@pytest.fixture(scope="module")
def stack() -> Iterator[PackagedStack]:
    (ROOT / ".run").mkdir(exist_ok=True)
    run_dir = Path(tempfile.mkdtemp(prefix="e2e-packages-", dir=ROOT / ".run"))
    lines: list[str] = []
    with PackagedStack(run_dir, report=lines.append) as running:
        running.plane.apply(ROOT / "example/platform")
        wait_for(lambda: running.plane.cluster.get("v1", "Namespace", PROJECT), "the namespace")
        yield running


@pytest.fixture
def make_node(stack: PackagedStack) -> MakeNode:
    return lambda: Node(stack, f"packaged-{next(_numbers)}")


def test_the_configuration_brings_the_function_that_makes_a_node_ready(
    stack: PackagedStack, make_node: MakeNode
) -> None:
    node = make_node().apply()

    handle = node.until_ready()

    assert node.machine(handle) is not None
    wait_for(stack.is_healthy, "the Function Healthy")
    found = stack.plane.cluster.get(PACKAGE_API, "Function", FUNCTION_NAME)
    assert found is not None
    repository, _, _version = Release().reference(FUNCTION).rpartition(":")
    assert found["spec"]["package"].startswith(f"{repository}:")
    assert stack.calls()[active(stack), "OK"] > 0


def test_an_upgrade_of_the_function_leaves_no_gap(
    stack: PackagedStack, make_node: MakeNode
) -> None:
    nodes = [make_node().apply(), make_node().apply()]
    for node in nodes:
        node.until_ready()
    calls, failed = stack.calls(), stack.failed_reconciles()
    complaints, old = stack.complaints(), active(stack)

    with touched(nodes):
        during = make_node().apply()
        new = upgrade(stack, Release(version="v0.2.0"))
        during.until_ready()
        wait_for(lambda: stack.calls()[new, "OK"] > CALLS_ENOUGH, "calls of the new version")

    made = stack.calls() - calls
    assert made[old, "OK"] > 0
    assert stack.failed_reconciles() - failed <= ONE_RETRY * len([*nodes, during])
    assert all(count <= ONE_RETRY for count in (stack.complaints() - complaints).values())
    assert states(stack).items() >= {new: "Active", old: "Inactive"}.items()
    wait_for(stack.is_healthy, "the Function Healthy")


def test_after_an_upgrade_the_old_version_is_not_needed(
    stack: PackagedStack, make_node: MakeNode
) -> None:
    old = active(stack)
    upgrade(stack, Release(version="v0.3.0"))
    stack.served[old].stop()

    node = make_node().apply()

    node.until_ready()


def test_an_upgrade_to_a_version_nobody_serves_is_a_gap_that_heals(
    stack: PackagedStack, make_node: MakeNode
) -> None:
    """The negative control: the measures of the gap-free upgrade do see a gap."""
    release = Release(version="v0.4.0")
    node = make_node().apply()
    handle = node.until_ready()
    failed, complaints = stack.failed_reconciles(), stack.complaints()
    digest = stack.publish(FUNCTION, release)
    revision = revisions.revision_name(FUNCTION_NAME, digest)

    stack.update_function(release)

    with touched([node]):
        wait_for(lambda: stack.failed_reconciles() - failed > ONE_RETRY, "failed reconciles")
    wait_for(lambda: stack.complaints()[node.name] > complaints[node.name], "complaints")
    node.assert_untouched(handle)
    stack.serve(revision)
    make_node().apply().until_ready()
    wait_for(
        lambda: condition_of(node.xr(), "Synced").get("status") == "True",
        "Synced again",
        explain=node.explain,
    )
    assert node.until_ready() == handle


def upgrade(stack: PackagedStack, release: Release) -> str:
    """Upgrade the Function without a gap; return its new revision."""
    digest = stack.publish(FUNCTION, release)
    cluster, package = stack.plane.cluster, release.reference(FUNCTION)
    revision = revisions.prepare(cluster, FUNCTION_NAME, package, digest)
    with revisions.both_active(cluster, FUNCTION_NAME, revision):
        stack.update_function(release)
    stack.serve(revision)
    return revision


def active(stack: PackagedStack) -> str:
    """Name the revision that core calls, or nothing."""
    found = revisions.active(stack.plane.cluster, FUNCTION_NAME)
    return str(found["metadata"]["name"]) if found else ""


def states(stack: PackagedStack) -> dict[str, str]:
    """Tell every revision's desired state."""
    found = revisions.of(stack.plane.cluster, FUNCTION_NAME)
    return {each["metadata"]["name"]: each["spec"]["desiredState"] for each in found}


@contextlib.contextmanager
def touched(nodes: Sequence[Node]) -> Iterator[None]:
    """Give the XRs of some nodes something to reconcile, again and again."""
    over = threading.Event()
    cluster = nodes[0].cluster

    def touch() -> None:
        for number in itertools.count():
            for node in nodes:
                xr = node.xr()
                assert xr is not None
                xr["metadata"].setdefault("annotations", {})[TOUCHED] = str(number)
                with contextlib.suppress(RefusedError):  # somebody wrote in between
                    cluster.replace(xr)
            if over.wait(TOUCH_PAUSE_S):
                return

    with ThreadPoolExecutor(max_workers=1) as pool:
        touching = pool.submit(touch)
        try:
            yield
        finally:
            over.set()
        touching.result()
