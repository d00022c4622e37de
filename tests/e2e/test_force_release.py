"""What a teardown needs stays until it is done, and how a person gets past a node that stays.

The identity side is made to fail in Postgres itself: a trigger refuses to let one node go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import asyncpg
import pytest

from dev.stack import Stack
from function.contract import names
from reconciler.domain.protection import external_secret
from tests.e2e.conftest import MakeNode
from tests.e2e.deploy import external_secrets
from tests.e2e.deploy.holding import refused
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.world import API, SUBSTRATE_API, Node, aggregate, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

REASON: Final = "OPS-17: the mesh's store is gone for good"
NEVER: Final = {"demo-boot": "never"}
RECORDS: Final = f"/apis/{API}/namespaces"
MANAGER: Final = "kubectl-annotate"

KEEP: Final = """
CREATE FUNCTION plexsphere.keep_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'this node stays'; END $$;
CREATE TRIGGER keep_node BEFORE UPDATE ON plexsphere.nodes FOR EACH ROW
WHEN (new.deregistered_at IS NOT NULL AND new.provisioned_resource_id = '{resource}')
EXECUTE FUNCTION plexsphere.keep_node();
"""
LET_GO: Final = "DROP FUNCTION IF EXISTS plexsphere.keep_node CASCADE"

AUDIT: Final = """
SELECT a.action, a.reason, a.actor, a.namespace, a.record_name
FROM plexsphere.broker_audit a
JOIN plexsphere.provisioned_resources r ON r.id = a.provisioned_resource_id
WHERE r.xr_name = $1 ORDER BY a.id
"""


def _query(stack: Stack, statement: str, *values: object) -> list[asyncpg.Record]:
    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(stack.postgres.dsn)
        try:
            if not values:
                await connection.execute(statement)
                return []
            return list(await connection.fetch(statement, *values))
        finally:
            await connection.close()

    return asyncio.run(run())


@pytest.fixture
def admin(stack: Stack) -> Caller:
    return Caller(stack.plane.kubeconfig)


@pytest.fixture
def kept(stack: Stack, make_node: MakeNode) -> Iterator[Node]:
    """A node whose deletion hangs, because its mesh does not let it go."""
    node = make_node().apply()
    handle = node.until_ready()
    _query(stack, KEEP.format(resource=handle.removeprefix("pr-")))
    node.delete(propagation="Background")
    wait_for(
        lambda: _reason(node, "Ready") == "NodeDeregistrationFailed",
        "the failed deregistration on the record",
        explain=node.explain,
    )
    yield node
    _query(stack, LET_GO)


def _reason(node: Node, condition: str) -> str:
    return str(condition_of(node.record(), condition).get("reason", ""))


def _annotation(reason: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.ANNOTATION_FORCE_RELEASE: reason}}}


def _path(node: Node) -> str:
    record = node.record()
    assert record is not None
    name = record["metadata"]["name"]
    return f"{RECORDS}/{node.namespace}/provisioningrecords/{name}?fieldManager={MANAGER}"


def test_a_node_that_cannot_leave_is_given_up_by_break_glass_alone(
    stack: Stack, kept: Node, admin: Caller
) -> None:
    handle, path = kept.handle(), _path(kept)
    name = path.rpartition("/")[2].partition("?")[0]
    assert kept.phase() == "Deregistering"
    assert kept.machine(handle) is not None

    by_admin = admin.as_user("jane", MASTERS).patch(path, _annotation(REASON))
    by_tenant = admin.as_user("tenant", "system:authenticated").patch(path, _annotation(REASON))

    assert refused(by_admin, names.ANNOTATION_FORCE_RELEASE, BREAK_GLASS)
    assert by_tenant.status == 403
    kept.assert_untouched(handle)

    glass = admin.as_user("jane", BREAK_GLASS)
    assert glass.patch(path, _annotation("  ")).ok
    wait_for(
        lambda: _reason(kept, "NodeRegistered") == "ForceReleaseInvalid",
        "the blank reason's condition",
        explain=kept.explain,
    )
    told = condition_of(kept.record(), "NodeRegistered")["message"]
    assert f"metadata.annotations[{names.ANNOTATION_FORCE_RELEASE}]: must give a reason" in told
    assert kept.machine(handle) is not None

    answer = glass.patch(path, _annotation(REASON))
    assert answer.ok, answer.message

    kept.until_gone(handle)
    (row,) = _query(stack, AUDIT, handle)
    assert dict(row) == {
        "action": "force-release",
        "reason": REASON,
        "actor": MANAGER,
        "namespace": kept.namespace,
        "record_name": name,
    }
    left = aggregate(stack.postgres.dsn, handle)
    assert left is not None
    assert (left["status"], left["live_nodes"], left["live_tokens"]) == ("Deleted", 1, 0)
    events = stack.plane.cluster.list("v1", "Event", kept.namespace)
    assert any(
        (item["reason"], item["type"]) == ("ForceReleased", "Warning")
        and item["involvedObject"]["name"] == name
        and REASON in item["message"]
        for item in events
    )


def test_a_node_that_may_leave_after_all_is_out_at_the_end(
    stack: Stack, kept: Node, admin: Caller
) -> None:
    handle = kept.handle()
    answer = admin.as_user("jane", BREAK_GLASS).patch(_path(kept), _annotation(REASON))
    assert answer.ok, answer.message
    wait_for(lambda: _query(stack, AUDIT, handle), "the audit's row")

    _query(stack, LET_GO)

    kept.until_gone(handle)
    kept.assert_nothing_left(handle)
    assert [row["action"] for row in _query(stack, AUDIT, handle)] == ["force-release"]


def test_a_substrate_that_break_glass_deletes_is_audited(
    stack: Stack, kept: Node, admin: Caller
) -> None:
    handle = kept.handle()
    path = f"/apis/{SUBSTRATE_API}/namespaces/{kept.namespace}/xgenericvms/{handle}"

    answer = admin.as_user("jane", BREAK_GLASS).delete(path, propagationPolicy="Foreground")
    assert answer.ok, answer.message
    wait_for(lambda: kept.substrate(handle) is None, "the substrate gone")
    assert kept.phase() == "Deregistering"
    _query(stack, LET_GO)

    kept.until_gone(handle)
    kept.assert_nothing_left(handle)
    (row,) = _query(stack, AUDIT, handle)
    assert (row["action"], row["actor"]) == ("unreleased-substrate-gone", None)
    assert handle in row["reason"]


@pytest.fixture
def tenancy(stack: Stack) -> Callable[..., tuple[str, str]]:
    """Make a Project with a credential of its own; return its namespace and its Secret."""

    def make(number: int, **spec: Any) -> tuple[str, str]:
        identity = f"0197b1a2-7c3d-7e4f-8a5b-0000000000f{number}"
        vault = {"mount": "kv", "path": f"acme/held-{number}"}
        project: dict[str, Any] = {"id": identity, "domainRef": {"name": "acme"}}
        credential = {
            "cloudRef": {"name": "demo"},
            "vault": vault,
            "projects": [f"held-{number}"],
            **spec,
        }
        stack.plane.apply(
            _object("Project", f"held-{number}", project),
            _object("CloudCredential", f"held-{number}", credential),
        )
        namespace = f"plexsphere-project-{identity}"
        wait_for(lambda: stack.plane.cluster.get("v1", "Namespace", namespace), namespace)
        return namespace, names.cloud_credentials_secret_name(**vault)

    return make


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _held(admin: Caller, path: str) -> bool:
    labels = admin.get(path).body["metadata"].get("labels", {})
    return bool(labels.get(names.LABEL_HOLD) == "true")


def test_the_secret_of_a_credential_stays_while_a_node_uses_it(
    admin: Caller, make_node: MakeNode, tenancy: Callable[..., tuple[str, str]]
) -> None:
    namespace, name = tenancy(1)
    node = make_node(namespace=namespace, credential="held-1", labels=NEVER).apply()
    handle = node.until_enrolling()
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    # It comes after the node: the sweep finds it.
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    assert admin.create(secrets, body).ok
    path = f"{secrets}/{name}"
    wait_for(lambda: _held(admin, path), "the Secret held")

    answer = admin.delete(path)

    assert refused(answer, f"Secret {name}", "teardown of nodes needs it")
    node.delete(propagation="Background")
    node.until_gone(handle)
    wait_for(lambda: not _held(admin, path), "the Secret let go")
    assert admin.delete(path).ok
    assert admin.get(path).status == 404


@pytest.fixture
def operator(stack: Stack, admin: Caller) -> Iterator[Caller]:
    """Give External Secrets' account its rights on Secrets; it may not update Projects."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "tests-external-secrets"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch"]}],
    }
    reference = {"apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        **role,
        "kind": "ClusterRoleBinding",
        "roleRef": {**reference, "kind": "ClusterRole", "name": "tests-external-secrets"},
        "subjects": [{**reference, "kind": "User", "name": external_secrets.ACCOUNT}],
    }
    del binding["rules"]
    stack.plane.apply(role, binding)
    yield admin.as_user(external_secrets.ACCOUNT, "system:authenticated")
    definition = external_secrets.definition()["metadata"]["name"]
    admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}")
    for kind in ("clusterrolebindings", "clusterroles"):
        admin.delete(f"/apis/rbac.authorization.k8s.io/v1/{kind}/tests-external-secrets")


def test_an_external_secret_is_rendered_held_and_deleted_with_its_last_user(
    stack: Stack,
    admin: Caller,
    operator: Caller,
    make_node: MakeNode,
    tenancy: Callable[..., tuple[str, str]],
) -> None:
    store = {"kind": "ClusterSecretStore", "name": "openbao"}
    namespace, name = tenancy(2, secretStoreRef=store)
    node = make_node(namespace=namespace, credential="held-2", labels=NEVER).apply()
    handle = node.until_enrolling()
    wait_for(
        lambda: _reason(node, "Ready") == "ExternalSecretsMissing",
        "why nothing brings the Secret",
        explain=node.explain,
    )
    told = condition_of(node.record(), "Ready")["message"]
    assert "secretStoreRef" in told
    assert name in told

    stack.plane.apply(external_secrets.definition())
    rendered, made = (
        external_secrets.path(namespace, name),
        f"/api/v1/namespaces/{namespace}/secrets/{name}",
    )
    found = wait_for(lambda: _found(admin, rendered), "the ExternalSecret")
    assert found["spec"]["secretStoreRef"] == store
    assert found["metadata"]["labels"][external_secret.LABEL_MANAGED_BY]
    answer = operator.create(made.rpartition("/")[0], external_secrets.secret_of(found))
    assert answer.ok, answer.message
    wait_for(lambda: _held(admin, made), "the Secret held")
    rotated = operator.patch(made, {"stringData": {"token": "rotated"}})
    assert rotated.ok, rotated.message

    for path in (rendered, made):
        assert refused(admin.delete(path), name, "teardown of nodes needs it")
    node.delete(propagation="Background")
    node.until_gone(handle)
    wait_for(lambda: _found(admin, rendered) is None, "our ExternalSecret gone")
    wait_for(lambda: not _held(admin, made), "the Secret let go")


def _found(admin: Caller, path: str) -> dict[str, Any] | None:
    answer = admin.get(path)
    return answer.body if answer.ok else None
