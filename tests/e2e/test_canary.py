"""One node's whole life, and then a search for its secrets wherever something is kept or told.

No tracing exists. The function's metrics are searched by
`tests/unit/function/hostile/test_canary.py`, which has no token to lose there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import asyncpg
import psutil
import pytest

from dev.stack import Stack
from function.contract import names
from tests.e2e import canaries
from tests.e2e.conftest import MakeNode
from tests.e2e.deploy.identity import Caller
from tests.e2e.world import PROJECT, Node, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

PROJECT_ID: Final = PROJECT.removeprefix("plexsphere-project-")
TOKENS: Final = f"/v1/projects/{PROJECT_ID}/bootstrap-tokens"
REQUEST_TIMEOUT_S: Final = 30.0


@dataclass
class Told:
    """Requests of a node or an operator, and all that they were told.

    Attributes:
        answers: Every error's body, and every body of the operators' API.
    """

    base_url: str
    answers: list[str] = field(default_factory=list)

    def ask(
        self, method: str, path: str, body: object = None, *, bearer: str = ""
    ) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        payload = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own listener
            self.base_url + path, data=payload, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:  # noqa: S310
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        if status >= 400 or path.startswith(TOKENS):
            self.answers.append(text)
        return status, json.loads(text) if text.startswith("{") else text


def _secret(node: Node) -> dict[str, Any]:
    """Return the Secret that delivers a node's token."""
    record = node.record()
    assert record is not None
    (found,) = [
        secret
        for secret in node.cluster.list("v1", "Secret", node.namespace)
        if secret.get("type") == names.TOKEN_SECRET_TYPE
        and secret["metadata"]["labels"][names.LABEL_RECORD] == record["metadata"]["name"]
    ]
    return found


def _due(node: Node, handle: str) -> list[str]:
    """Return where a token is while its machine may come."""
    return [
        f"{canaries.DELIVERY} Secret/{_secret(node)['metadata']['name']}",
        f"{canaries.DOCUMENT} XGenericVM/{handle}",
        f"{canaries.DOCUMENT} Machine/{handle}",
    ]


@contextmanager
def _broken(dsn: str) -> Iterator[None]:
    """Take away a table that only a registration needs."""

    async def execute(statement: str) -> None:
        connection = await asyncpg.connect(dsn)
        await connection.execute(statement)
        await connection.close()

    asyncio.run(execute("ALTER TABLE plexsphere.registration_nonces RENAME TO hidden"))
    try:
        yield
    finally:
        asyncio.run(execute("ALTER TABLE plexsphere.hidden RENAME TO registration_nonces"))


def _bearer(registered: dict[str, Any]) -> str:
    raw = UUID(registered["node_id"]).bytes + base64.b64decode(registered["nsk"])
    return "nsk_plexd_" + base64.urlsafe_b64encode(raw).decode()


def _heartbeat() -> dict[str, Any]:
    return {
        "client_now": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "binary_checksum": base64.b64encode(bytes(32)).decode(),
        "binary_version": "v0.8.0",
        "nat_summary": {},
    }


def _operators_token(stack: Stack) -> str:
    """Return a fresh token of an account that may read and revoke."""
    admin = Caller(stack.plane.kubeconfig)
    api = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "provisioning-broker-operator-revoke",
    }
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "canary-operator"}
    metadata = {"metadata": {"name": "canary-operator"}}
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    admin.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", **metadata})
    admin.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {**api, **metadata, "roleRef": role, "subjects": [subject]},
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = admin.create(f"{accounts}/canary-operator/token", request)
    assert answer.ok, answer.message
    return str(answer.body["status"]["token"])


def test_a_nodes_secrets_are_nowhere_after_and_during_its_life(
    stack: Stack, make_node: MakeNode
) -> None:
    node = make_node(labels={"demo-boot": "never"}).apply()
    handle = node.until_enrolling()
    token = base64.b64decode(_secret(node)["data"][names.TOKEN_SECRET_KEY]).decode()
    operator = _operators_token(stack)
    secrets = {
        "token": token.encode(),
        "random part": token.rpartition("_")[2].encode(),
        "operator's token": operator.encode(),
    }
    # That it is found where it is due shows that the search finds it.
    assert canaries.found_in(canaries.everywhere(stack), secrets) == {
        (name, place) for name in ("token", "random part") for place in _due(node, handle)
    }

    machine, operators = Told(stack.node_url), Told(stack.operator_url)
    body = {
        "project_id": PROJECT_ID,
        "resource_handle": handle,
        "bootstrap_token": token,
        "nonce": "canary",
        "public_key": base64.b64encode(b"\x09" + bytes(range(31))).decode(),
    }
    _mistreat(machine, body, dsn=stack.postgres.dsn)
    lost, registered = _lost_and_retried(machine, body)
    secrets |= {
        "lost key": base64.b64decode(lost["nsk"]),
        "key": base64.b64decode(registered["nsk"]),
        "bearer": _bearer(registered).encode(),
    }
    _live(machine, body, lost, registered)
    _operate(stack, operators, operator)
    assert node.until_ready() == handle
    during = canaries.everywhere(stack)

    node.delete(propagation="Background")
    node.until_gone(handle)
    status, _ = machine.ask(
        "GET", f"/v1/nodes/{registered['node_id']}/state", bearer=_bearer(registered)
    )

    assert status == 403
    left = canaries.found_in(during, secrets)
    assert left <= {
        (name, f"{canaries.DOCUMENT} {kind}/{handle}")
        for name in ("token", "random part")
        for kind in ("XGenericVM", "Machine")
    }
    assert canaries.found_in(canaries.everywhere(stack), secrets) == set()
    told = {f"answer {number}": text for number, text in enumerate(machine.answers)}
    told |= {f"operator {number}": text for number, text in enumerate(operators.answers)}
    assert len(told) > 10
    assert canaries.found_in(told, secrets) == set()


def test_a_crash_of_the_reconciler_would_leave_no_core(stack: Stack) -> None:
    reconcilers = [
        process
        for process in psutil.Process().children(recursive=True)
        if process.cmdline()[-1:] == ["serve"] and "broker" in " ".join(process.cmdline())
    ]

    assert reconcilers
    for process in reconcilers:
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)


def _mistreat(machine: Told, body: dict[str, str], *, dsn: str) -> None:
    """Have everything fail that carries the token, a fault of our own included."""
    token = body["bootstrap_token"]
    for wrong in (
        {**body, "nonce": 7},
        {**body, "public_key": token},
        {**body, "project_id": token},
        {**body, "resource_handle": token},
        {**body, token: 1},
        {token: token},
        token,
    ):
        status, _ = machine.ask("POST", "/v1/register", wrong)
        assert 400 <= status < 500, status
    for method, path in (("GET", f"/{token}"), ("POST", f"/v1/nodes/{token}/heartbeat")):
        status, _ = machine.ask(method, path, bearer=token)
        assert 400 <= status < 500
    with _broken(dsn):
        status, _ = machine.ask("POST", "/v1/register", body)
    assert status >= 500


def _lost_and_retried(machine: Told, body: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    replies = []
    for _ in range(2):
        status, reply = machine.ask("POST", "/v1/register", body)
        assert status == 201, reply
        replies.append(reply)
    assert replies[0]["node_id"] == replies[1]["node_id"]
    assert replies[0]["nsk"] != replies[1]["nsk"]
    return replies[0], replies[1]


def _live(
    machine: Told, body: dict[str, str], lost: dict[str, Any], registered: dict[str, Any]
) -> None:
    path = f"/v1/nodes/{registered['node_id']}"
    status, _ = machine.ask("POST", f"{path}/heartbeat", _heartbeat(), bearer=_bearer(registered))
    assert status == 200
    # The key that reported first is the node's; the other, of the lost reply, is nobody's now.
    status, _ = machine.ask("POST", f"{path}/heartbeat", _heartbeat(), bearer=_bearer(lost))
    assert status == 401
    status, _ = machine.ask("GET", f"{path}/state", bearer=_bearer(registered))
    assert status == 200
    thief = {**body, "public_key": base64.b64encode(b"\x0a" + bytes(range(31))).decode()}
    # Every machine of this host counts for one address: what is above its budget is no answer yet.
    status = wait_for(
        lambda: next(
            (told for told, _ in [machine.ask("POST", "/v1/register", thief)] if told != 429), None
        ),
        "the thief answered",
    )
    assert status == 403


def _operate(stack: Stack, operators: Told, operator: str) -> None:
    """Read the metadata, and be refused what is refused."""
    wait_for(lambda: operators.ask("GET", TOKENS, bearer=operator)[0] == 200, "the operator's role")
    _, page = operators.ask("GET", f"{TOKENS}?limit=500", bearer=operator)
    spent = [item for item in page["items"] if "consumed_at" in item]
    assert spent
    assert operators.ask("DELETE", f"{TOKENS}/{spent[-1]['id']}", bearer=operator)[0] == 409
    assert operators.ask("POST", TOKENS, {}, bearer=operator)[0] == 403
    assert operators.ask("GET", TOKENS)[0] == 401
    assert operators.ask("GET", TOKENS, bearer=operator + "x")[0] == 401
