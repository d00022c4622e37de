"""`docs/runbooks/enrolment.md`: each entry's symptom is made, and its commands are run."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import Iterator
from typing import Final

import asyncpg
import pytest
import urllib3

from dev.stack import Stack
from tests.e2e import runbook
from tests.e2e.conftest import MakeNode
from tests.e2e.deploy import external_secrets
from tests.e2e.world import Node, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PAGE: Final = "enrolment"
NEVER: Final = {"demo-boot": "never"}
AGENTS: Final = "plexsphere-system"
RENDER: Final = """
broker render daemonset --token-delivery eso --secret-store openbao --remote-key acme/plexd \
  --api-url https://api.example.org --plexd-image registry.example.org/plexd:v0.8.0 \
  | kubectl apply --server-side --force-conflicts -f -
"""
TIMEOUT_S: Final = 10.0

EXPIRE: Final = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - interval '25 hours', expires_at = issued_at - interval '1 hour'
WHERE provisioned_resource_id = $1
"""


def _expire(stack: Stack, handle: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(stack.postgres.dsn)
        try:
            await connection.execute(EXPIRE, handle.removeprefix("pr-"))
        finally:
            await connection.close()

    asyncio.run(run())


@pytest.fixture
def bundle(stack: Stack) -> Iterator[None]:
    """The agent's DaemonSet with its ExternalSecret, where nobody runs External Secrets."""
    definition = external_secrets.definition()
    # The one that is ours to write has fewer fields than the bundle's.
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything
    stack.plane.apply(definition)
    runbook.run(stack, RENDER, {})
    yield
    runbook.run(
        stack,
        f"kubectl -n {AGENTS} delete daemonset/plexd externalsecret/plexd-bootstrap-token\n"
        f"kubectl -n {AGENTS} delete secret plexd-bootstrap-token --ignore-not-found\n"
        f"kubectl delete crd {definition['metadata']['name']}",
        {},
    )


def test_entry_1_an_expired_token_is_told_and_the_machine_is_replaced(
    stack: Stack, make_node: MakeNode
) -> None:
    node = make_node(labels=NEVER).apply()
    handle = node.until_enrolling()
    _expire(stack, handle)
    page = runbook.entry(PAGE, "1.")
    wait_for(
        lambda: condition_of(node.record(), "Stalled").get("reason") == "TokenExpired",
        "the expired token on the record",
        explain=node.explain,
    )

    told = runbook.follow(stack, node, page, "Diagnose")
    assert told.split() == ["Expired", "TokenExpired"]
    answer = runbook.why(stack, node)
    assert (answer["reason"], answer["runbook"]) == ("TokenExpired", "enrolment.md, entry 1")
    node.until_earned()
    node.labels = {"mended": "yes"}
    node.apply()
    wait_for(
        lambda: _accepted_labels(node) == node.labels,
        "the mended declaration accepted",
        explain=node.explain,
    )
    runbook.follow(stack, node, page, "Fix")

    wait_for(lambda: node.handle() not in ("", handle), "a fresh record", explain=node.explain)
    assert node.until_ready() != handle
    node.assert_aggregate_deleted(handle)


def _accepted_labels(node: Node) -> object:
    status = (node.record() or {}).get("status") or {}
    return (status.get("accepted") or {}).get("labels", {})


@pytest.mark.usefixtures("bundle")
def test_entry_2_a_token_enrols_one_pod_of_a_daemonset(stack: Stack, make_node: MakeNode) -> None:
    node = make_node(labels=NEVER).apply()
    handle = node.until_enrolling()
    token = _token(stack, node)
    winner = _register(stack, node, handle, token)
    loser = _register(stack, node, handle, token)
    assert winner.status < 300, winner.data
    assert (loser.status, loser.json()["code"]) == (403, "token_consumed")
    page = runbook.entry(PAGE, "2.")

    assert runbook.follow(stack, None, page, "Diagnose").strip() == ""
    runbook.follow(stack, None, page, "Fix", NODE="worker-1")

    told = runbook.follow(stack, None, page, "Diagnose")
    assert json.loads(told) == {"kubernetes.io/hostname": "worker-1"}
    node.until_ready()


def _token(stack: Stack, node: Node) -> str:
    record = node.record()
    assert record is not None
    name = record["status"]["bootstrap"]["secretRef"]["name"]
    secret = stack.plane.cluster.get("v1", "Secret", name, node.namespace)
    assert secret is not None
    return base64.b64decode(secret["data"]["token"]).decode()


def _register(stack: Stack, node: Node, handle: str, token: str) -> urllib3.BaseHTTPResponse:
    """Register as a pod does, with a key of its own."""
    body = {
        "project_id": node.namespace.removeprefix("plexsphere-project-"),
        "resource_handle": handle,
        "bootstrap_token": token,
        "nonce": secrets.token_hex(16),
        "public_key": base64.b64encode(secrets.token_bytes(32)).decode(),
    }
    return urllib3.request("POST", f"{stack.node_url}/v1/register", json=body, timeout=TIMEOUT_S)


@pytest.mark.usefixtures("bundle")
def test_entry_3_an_external_secret_that_never_comes_says_nothing(stack: Stack) -> None:
    page = runbook.entry(PAGE, "3.")

    assert runbook.follow(stack, None, page, "Diagnose").split() == []
    runbook.follow(stack, None, page, "Fix")
    found = stack.plane.cluster.get(
        "external-secrets.io/v1", "ExternalSecret", "plexd-bootstrap-token", AGENTS
    )
    assert found is not None
    assert "force-sync" in found["metadata"]["annotations"]
    # What the operator does once it runs.
    secret = {"name": "plexd-bootstrap-token", "namespace": AGENTS}
    stack.plane.apply({"apiVersion": "v1", "kind": "Secret", "metadata": secret})

    assert "secret/plexd-bootstrap-token" in runbook.follow(stack, None, page, "Diagnose")
