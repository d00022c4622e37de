"""The reconciler's rights in a Project's namespace, on a real API server with its controllers.

When its RoleBinding is there, held and effective.
"""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import uuid4

import pytest

from function.contract import names
from reconciler.adapters.kubernetes.namespaces import project_rights
from reconciler.domain.aggregate.errors import NamespaceNotReadyError, StaleAggregateError
from reconciler.ports.cluster.substrates import NotAllowedError
from tests.contract.cluster_worlds import (
    FOREIGN_FINALIZER,
    SAMPLE_SECRET,
    RealWorld,
    await_rights,
    token,
)
from tests.e2e.deploy.identity import MASTERS, RECONCILER, Answer, wait_until
from tests.e2e.deploy.rights import may

pytestmark = pytest.mark.integration

TIMEOUT_S: Final = 45.0
TRIES: Final = 20
API: Final = "/apis/rbac.authorization.k8s.io/v1"
HELD: Final = {names.LABEL_HOLD: "true"}


async def nobody() -> bool:
    return False


def path(world: RealWorld) -> str:
    return f"{API}/namespaces/{world.namespace}/rolebindings/{project_rights.BINDING}"


def binding(world: RealWorld) -> dict[str, Any]:
    answer = world.admin.get(path(world))
    assert answer.ok, answer.message
    return answer.body


def is_held(world: RealWorld) -> bool:
    return bool(binding(world)["metadata"]["labels"].get(names.LABEL_HOLD) == "true")


def somebody_deletes(world: RealWorld) -> Answer:
    return world.admin.as_user("jane", MASTERS).delete(path(world))


def unbind(world: RealWorld) -> None:
    """Take the RoleBinding away as break-glass may, and its effect."""
    assert world.admin.delete(path(world)).ok
    wait_until(
        lambda: not may(world.admin, RECONCILER, "get", "/secrets", namespace=world.namespace),
        timeout_s=TIMEOUT_S,
        what="the rights are gone",
    )


def terminate(world: RealWorld) -> None:
    """Delete the namespace, and wait until its controller was refused what is held."""
    assert world.admin.delete(world.path).ok
    wait_until(
        lambda: "'plexsphere-hold'" in json.dumps(world.admin.get(world.path).body),
        timeout_s=TIMEOUT_S,
        what="the namespace controller was refused",
    )


async def test_it_is_held_while_nodes_are_there_and_free_before_and_after(real: RealWorld) -> None:
    assert not is_held(real)

    await real.cluster.namespaces.hold_namespace(real.namespace, records=1)
    assert is_held(real)
    assert somebody_deletes(real).status == 403

    await real.cluster.namespaces.hold_namespace(real.namespace, records=0, needed=nobody)
    assert not is_held(real)
    assert somebody_deletes(real).ok


async def test_the_same_again_writes_nothing(real: RealWorld) -> None:
    for records in (1, 0):
        await real.cluster.namespaces.hold_namespace(real.namespace, records=records, needed=nobody)
        before = binding(real)

        await real.cluster.namespaces.hold_namespace(real.namespace, records=records, needed=nobody)

        assert binding(real) == before


async def test_it_outlasts_the_deletion_of_its_namespace_until_the_teardown_is_done(
    real: RealWorld,
) -> None:
    record = real.new_record()
    await real.cluster.token_secrets.create_token_secret(record, name="web-1-g1", token=token())
    real.new_secret(SAMPLE_SECRET)
    await real.cluster.credentials.hold_credentials(real.namespace, SAMPLE_SECRET, held=True)
    await real.cluster.namespaces.hold_namespace(real.namespace, records=1)
    terminate(real)

    # What a teardown does, in its order; each needs the rights.
    assert is_held(real)
    owner = record["metadata"]["uid"]
    await real.cluster.token_secrets.delete_token_secret(real.namespace, "web-1-g1", owner=owner)
    await real.cluster.credentials.hold_credentials(
        real.namespace, SAMPLE_SECRET, held=False, needed=nobody
    )
    assert is_held(real)
    await real.cluster.namespaces.hold_namespace(real.namespace, records=0, needed=nobody)
    real.remove_record(record)

    wait_until(
        lambda: real.admin.get(real.path).status == 404,
        timeout_s=TIMEOUT_S,
        what="the namespace is gone",
    )


async def test_without_the_hold_it_would_go_with_its_namespace(real: RealWorld) -> None:
    """The negative control: this is why it is held."""
    record = real.new_record()
    assert real.admin.delete(real.path).ok

    wait_until(
        lambda: real.admin.get(path(real)).status == 404,
        timeout_s=TIMEOUT_S,
        what="the RoleBinding is gone",
    )

    assert real.live_record(record) is not None


async def test_a_namespace_of_before_gets_it_with_its_next_look(real: RealWorld) -> None:
    unbind(real)
    real.admin.patch(real.path, {"metadata": {"labels": HELD}})

    await real.cluster.namespaces.hold_namespace(real.namespace, records=2)

    assert is_held(real)
    await_rights(real.admin, real.namespace)
    assert not await real.cluster.token_secrets.token_secret_exists(real.namespace, "web-1-g1")


async def test_what_is_forbidden_brings_it_back(real: RealWorld) -> None:
    unbind(real)

    with pytest.raises(Exception, match="403"):
        await real.cluster.token_secrets.token_secret_exists(real.namespace, "web-1-g1")

    await_rights(real.admin, real.namespace)
    assert not await real.cluster.token_secrets.token_secret_exists(real.namespace, "web-1-g1")


async def test_where_it_cannot_be_had_any_more_that_is_said_and_a_person_can_help(
    real: RealWorld,
) -> None:
    record = real.new_record()
    real.new_secret(SAMPLE_SECRET)
    await real.cluster.credentials.hold_credentials(real.namespace, SAMPLE_SECRET, held=True)
    await real.cluster.namespaces.hold_namespace(real.namespace, records=1)
    terminate(real)
    unbind(real)

    with pytest.raises(NotAllowedError, match="bind ClusterRole 'provisioning-broker-project'"):
        await real.cluster.credentials.hold_credentials(real.namespace, SAMPLE_SECRET, held=False)
    # What needs no rights there goes on.
    await real.cluster.namespaces.hold_namespace(real.namespace, records=1)

    body = project_rights.manifest(held=False)
    everywhere = {**body, "kind": "ClusterRoleBinding", "metadata": {"name": real.namespace}}
    assert real.admin.create(f"{API}/clusterrolebindings", everywhere).ok
    try:
        await_rights(real.admin, real.namespace)
        await real.cluster.credentials.hold_credentials(real.namespace, SAMPLE_SECRET, held=False)
        await _settled(real)
    finally:
        # It gives rights in every namespace, the next test's too.
        assert real.admin.delete(f"{API}/clusterrolebindings/{real.namespace}").ok
    real.remove_record(record)


async def _settled(real: RealWorld) -> None:
    """Let the namespace go as the queue does: its controller writes its status meanwhile."""
    for _ in range(TRIES):
        try:
            await real.cluster.namespaces.hold_namespace(real.namespace, records=0, needed=nobody)
        except StaleAggregateError:
            continue
        return
    pytest.fail(f"the namespace changed {TRIES} times between a read and a write")


@pytest.mark.parametrize(
    "theirs",
    [
        {"roleRef": {"apiGroup": API.split("/")[2], "kind": "ClusterRole", "name": "view"}},
        {"subjects": [{"kind": "User", "name": "jane", "apiGroup": API.split("/")[2]}]},
        {"subjects": []},
        {"metadata": {"annotations": {names.ANNOTATION_RELEASED: "true"}, "labels": HELD}},
    ],
    ids=str,
)
async def test_one_that_somebody_prepared_is_made_ours(
    real: RealWorld, theirs: dict[str, Any]
) -> None:
    unbind(real)
    body = {**project_rights.manifest(held=False), **theirs}
    body["metadata"] = {"name": project_rights.BINDING, **theirs.get("metadata", {})}
    assert real.admin.create(path(real).rpartition("/")[0], body).ok

    await real.cluster.namespaces.hold_namespace(real.namespace, records=1)

    found, ours = binding(real), project_rights.manifest(held=True)
    assert found["roleRef"] == ours["roleRef"]
    assert found["subjects"] == ours["subjects"]
    assert names.ANNOTATION_RELEASED not in found["metadata"].get("annotations", {})
    assert is_held(real)


async def test_one_that_is_being_deleted_is_not_built_upon(real: RealWorld) -> None:
    finalizer = {"metadata": {"finalizers": [FOREIGN_FINALIZER]}}
    assert real.admin.patch(path(real), finalizer).ok
    assert somebody_deletes(real).ok

    with pytest.raises(NamespaceNotReadyError, match="cannot be kept"):
        await real.cluster.namespaces.hold_namespace(real.namespace, records=1)

    assert real.held() == (None, None)
    assert real.admin.patch(path(real), {"metadata": {"finalizers": None}}).ok


async def test_an_absent_namespace_gets_none(real: RealWorld) -> None:
    await real.cluster.namespaces.hold_namespace(names.project_namespace(uuid4()), records=1)
    await real.cluster.namespaces.hold_namespace(names.project_namespace(uuid4()), records=0)
