"""Nodes of anyone's resources, from an XR of a platform team's own to Ready and back."""

from __future__ import annotations

from functools import partial

import pytest

from dev.kube import RefusedError
from dev.stack import Stack
from tests.e2e import enrol_world
from tests.e2e.enrol_pool import Pool, held
from tests.e2e.enrol_world import (
    AFTER,
    ENROLLED,
    ENTRY,
    FORGETFUL,
    NETWORK,
    OTHER,
    PLAIN,
    RIGHTLESS,
)
from tests.e2e.world import API, CLOUD_API, Object, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def kinds(stack: Stack) -> Stack:
    """The team's kind, its Compositions and the rights for it."""
    enrol_world.install(
        stack,
        enrol_world.composition(PLAIN),
        enrol_world.composition(ENROLLED, [ENTRY]),
        enrol_world.composition(FORGETFUL, [OTHER]),
        enrol_world.composition(RIGHTLESS, [ENTRY], network="ServiceAccount"),
    )
    return stack


@pytest.fixture(scope="module")
def pools(kinds: Stack) -> dict[str, Pool]:
    """Make the pools of all tests at once, so that they earn their breakers' tokens together."""
    wanted = [
        ("whole", 2, ENROLLED),
        ("shrinking", 2, ENROLLED),
        ("crashing", 2, ENROLLED),
        ("forgotten", 1, ENROLLED),
        ("older", 1, PLAIN),
    ]
    made = {
        name: Pool(kinds, name).apply(1, composition=composition) for name, _, composition in wanted
    }
    # One after the other, with time to earn: two come near the hundred tokens that a breaker holds.
    more = [(made[name], count, composition) for name, count, composition in wanted if count > 1]
    for pool, _, _ in more:
        pool.until_ready("node-0")
    for pool, count, composition in more:
        pool.until_earned()
        pool.apply(count, composition=composition)
    return made


def _machine(pool: Pool, name: str) -> Object:
    found = pool.machine(name)
    assert found is not None
    return found


def _reason(pool: Pool, resource: str, condition: str) -> str:
    return str(condition_of(pool.record(resource), condition).get("reason", ""))


def _delete_record(pool: Pool, resource: str) -> str:
    record = pool.record(resource)
    assert record is not None
    name = record["metadata"]["name"]
    pool.cluster.delete(API, "ProvisioningRecord", name, pool.namespace)
    return str(record["metadata"]["uid"])


def _until_replaced(pool: Pool, resource: str, uid: str) -> str:
    """Wait until a record has a successor that is Ready; return the new handle."""
    wait_for(
        lambda: (pool.record(resource) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
        f"a new record of {resource}",
        explain=pool.explain,
    )
    return pool.until_ready(resource)[0]


def test_two_resources_become_nodes_and_leave_in_order(pools: dict[str, Pool]) -> None:
    pool = pools["whole"]

    handles = pool.until_ready("node-0", "node-1")

    _assert_decorated_and_no_more(pool, handles)
    _assert_held(pool, handles)
    network = pool.network()["metadata"]["name"]
    pool.delete("Background")
    pool.until_gone()
    for handle in handles:
        pool.assert_drained(handle)
    gone = pool.deletion("configmaps", network)
    if gone is not None:
        assert all(pool.moment("mesh", "deregistered", handle) < gone for handle in handles)
        assert all(pool.moment("cloud", "deleted", handle) < gone for handle in handles)


def _assert_decorated_and_no_more(pool: Pool, handles: list[str]) -> None:
    for handle in handles:
        machine = wait_for(partial(_executed, pool, handle), f"the document of {handle}")
        given = machine["spec"]["forProvider"]
        theirs = (given["region"], given["instanceType"], given["diskSizeGb"])
        assert theirs == ("nbg1", "standard-2", 40)
        assert given["tags"] == {"owner": "theirs", "team": "checkout"}
        assert given["userData"].startswith("#cloud-config")
        assert machine["metadata"]["labels"]["team"] == "theirs"
    addresses = {
        (pool.record(resource) or {})["status"]["node"]["meshIP"]
        for resource in ("node-0", "node-1")
    }
    assert len(addresses) == 2
    after = pool.composed(AFTER)
    assert after is not None
    assert after["data"] == {"by": "a later step"}
    assert not held(after)
    assert condition_of(pool.xr(), "Responsive").get("status") != "False", pool.explain()


def _executed(pool: Pool, handle: str) -> Object | None:
    machine = _machine(pool, handle)
    return machine if machine["status"]["atProvider"].get("exitCode") == 0 else None


def _assert_held(pool: Pool, handles: list[str]) -> None:
    network = pool.network()
    assert held(network)
    targets = [("v1", "ConfigMap", network["metadata"]["name"]), (CLOUD_API, "Machine", handles[0])]
    for api, kind, name in targets:
        for propagation in ("Background", "Foreground", "Orphan"):
            with pytest.raises(RefusedError) as refused:
                pool.cluster.delete(api, kind, name, pool.namespace, propagation=propagation)
            assert refused.value.status == 403
            assert "ProvisionedResource" in str(refused.value)
    for handle in handles:
        pool.assert_untouched(handle, _machine(pool, handle))


def test_a_shrunk_pool_drains_what_is_gone_and_grows_again(pools: dict[str, Pool]) -> None:
    pool = pools["shrinking"]
    kept, dropped = pool.until_ready("node-0", "node-1")
    machine, network = _machine(pool, kept), pool.network()
    pool.until_earned()

    pool.apply(1)

    _until_drained(pool, "node-1", dropped)
    pool.until_ready("node-0")
    pool.assert_untouched(kept, machine)
    assert held(pool.network())

    pool.apply(2)
    _, fresh = pool.until_ready("node-0", "node-1")
    assert fresh != dropped

    assert pool.network()["metadata"]["uid"] == network["metadata"]["uid"]
    pool.delete("Foreground")
    pool.until_gone()
    pool.assert_drained(kept)
    pool.assert_drained(fresh)


def test_a_reconciler_killed_while_it_drains_goes_on_with_it(
    kinds: Stack, pools: dict[str, Pool]
) -> None:
    pool = pools["crashing"]
    kept, dropped = pool.until_ready("node-0", "node-1")
    machine = _machine(pool, kept)
    pool.until_earned()

    pool.apply(1)
    wait_for(
        lambda: (pool.record("node-1") or {}).get("spec", {}).get("drain"),
        "the drain",
        explain=pool.explain,
    )
    kinds.kill_reconciler()
    kinds.start_reconciler()

    _until_drained(pool, "node-1", dropped)
    pool.until_ready("node-0")
    pool.assert_untouched(kept, machine)
    pool.delete("Background")
    pool.until_gone()


def _until_drained(pool: Pool, resource: str, handle: str) -> None:
    wait_for(
        lambda: pool.record(resource) is None and pool.machine(handle) is None,
        f"{resource} of {pool.name} drained",
        explain=pool.explain,
    )
    pool.assert_drained(handle)


def test_what_was_there_before_the_step_is_no_node_until_it_is_made_anew(
    pools: dict[str, Pool],
) -> None:
    pool = pools["older"]
    pool.until_ready()
    older = pool.composed("node-0", "Machine", CLOUD_API)
    assert older is not None
    pool.until_earned()

    pool.apply(1, composition=ENROLLED)

    wait_for(
        lambda: _reason(pool, "node-0", "NodeRegistered") == "NotInjected",
        "NotInjected",
        explain=pool.explain,
    )
    pool.until_ready("node-0")
    wait_for(
        lambda: held(_machine(pool, older["metadata"]["name"])), "its hold", explain=pool.explain
    )
    machine = _machine(pool, older["metadata"]["name"])
    assert machine["metadata"]["uid"] == older["metadata"]["uid"]
    assert "userData" not in machine["spec"]["forProvider"]
    assert pool.facts(pool.handle("node-0"))[-1].what == "broker.ProvisionedResourceReady"

    uid = _delete_record(pool, "node-0")

    handle = _until_replaced(pool, "node-0", uid)
    assert pool.moment("mesh", "registered", handle)
    assert pool.machine(older["metadata"]["name"]) is None
    assert _machine(pool, handle)["spec"]["forProvider"]["userData"].startswith("#cloud-config")
    pool.delete("Background")
    pool.until_gone()
    pool.assert_drained(handle)


def test_a_forgotten_resource_stays_and_a_record_deleted_by_hand_is_replaced(
    pools: dict[str, Pool],
) -> None:
    pool = pools["forgotten"]
    (handle,) = pool.until_ready("node-0")
    machine, network = _machine(pool, handle), pool.network()
    pool.until_earned()

    pool.apply(1, composition=FORGETFUL)

    wait_for(
        lambda: "node-0" in str(condition_of(pool.xr(), "Admitted").get("message")),
        "the forgotten resource named",
        explain=pool.explain,
    )
    pool.assert_untouched(handle, machine)
    assert pool.record("node-0") is not None

    pool.apply(1, composition=ENROLLED)
    pool.until_ready("node-0")
    pool.assert_untouched(handle, machine)
    assert held(pool.network())

    uid = _delete_record(pool, "node-0")

    fresh = _until_replaced(pool, "node-0", uid)
    pool.assert_drained(handle)
    assert pool.network()["metadata"]["uid"] == network["metadata"]["uid"]
    assert held(pool.network())
    pool.delete("Foreground")
    pool.until_gone()
    pool.assert_drained(fresh)


def test_nothing_is_made_that_could_not_be_torn_down(kinds: Stack) -> None:
    pool = Pool(kinds, "rightless").apply(1, composition=RIGHTLESS)

    wait_for(
        lambda: _reason(pool, "node-0", "Admitted") == "RightsMissing",
        "RightsMissing",
        explain=pool.explain,
    )
    message = condition_of(pool.record("node-0"), "Admitted")["message"]
    assert "get, patch, delete ServiceAccount in v1" in message
    assert pool.composed("node-0", "Machine", CLOUD_API) is None
    assert pool.composed(NETWORK, "ServiceAccount") is None

    kinds.plane.apply(
        enrol_world.reconciler_role(["configmaps", "machines", "pools", "serviceaccounts"])
    )

    (handle,) = pool.until_ready("node-0")
    assert held(pool.composed(NETWORK, "ServiceAccount"))
    pool.delete("Background")
    pool.until_gone()
    pool.assert_drained(handle)
    assert pool.composed(NETWORK, "ServiceAccount") is None
