"""What the node listener serves, refuses with a documented 501, and does not know."""

from __future__ import annotations

from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from tests.integration.http.both import fakes as nodes
from tests.integration.http.both import registered
from tests.integration.http.conftest import Answer, Nodes, bearer
from tests.integration.http.test_register import assert_problem

pytestmark = pytest.mark.integration
__all__ = ["nodes", "registered"]


class TestRoutes:
    @pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/v1/projects", "/v1/nodes"])
    async def test_nothing_else_is_served(self, nodes: Nodes, path: str) -> None:
        assert_problem(await nodes.ask("GET", path), 404, None)

    @pytest.mark.parametrize("rest", ["", "/", "/secrets", "/events/1", "/nothing", "/peers/x"])
    async def test_what_no_contract_names_is_404(
        self, nodes: Nodes, registered: Answer, rest: str
    ) -> None:
        headers = {"Authorization": f"Bearer {bearer(registered)}"}
        path = f"/v1/nodes/{registered.json['node_id']}{rest}"

        assert_problem(await nodes.ask("GET", path, headers=headers), 404, None)

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("GET", "/v1/register", "POST"),
            ("GET", f"/v1/nodes/{UUID(int=1)}/heartbeat", "POST"),
            ("POST", f"/v1/nodes/{UUID(int=1)}/state", "GET"),
            ("PATCH", f"/v1/nodes/{UUID(int=1)}/state/reports/a", "DELETE,PUT"),
            ("DELETE", f"/v1/nodes/{UUID(int=1)}/events", "GET"),
            ("GET", "/v1/keys/rotate", "POST"),
        ],
    )
    async def test_another_method_is_405(
        self, nodes: Nodes, method: str, path: str, allowed: str
    ) -> None:
        answer = await nodes.ask(method, path)

        assert_problem(answer, 405, None)
        assert answer.headers["Allow"] == allowed

    async def test_head_is_no_get(self, nodes: Nodes) -> None:
        path = f"{nodes.url}/v1/nodes/{UUID(int=1)}/state"

        async with nodes.session.head(path) as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET")

    async def test_an_error_names_its_request(self, nodes: Nodes) -> None:
        names = set()
        for _ in range(2):
            async with nodes.session.get(nodes.url) as response:
                names.add(response.headers["X-Correlation-Id"])
                problem = await response.json(content_type=None)
            assert problem["instance"] == f"urn:uuid:{response.headers['X-Correlation-Id']}"

        assert len(names) == 2


NOT_SERVED = [
    ("GET", "events", "signed_event_bus_not_provisioned"),
    ("GET", "reachability", "reachability_not_provisioned"),
    ("GET", "peers/x/psk", None),
    ("PUT", "endpoint", "endpoint_not_provisioned"),
    ("PUT", "capabilities", "capabilities_not_provisioned"),
    ("POST", "metrics", "observability_ingest_not_provisioned"),
    ("POST", "logs", "observability_ingest_not_provisioned"),
    ("POST", "audit", "observability_ingest_not_provisioned"),
    ("POST", "integrity-violations", "integrity_violations_not_provisioned"),
    ("PUT", "state/reports/disk.root", "reports_not_provisioned"),
    ("DELETE", "state/reports/disk.root", "reports_not_provisioned"),
    ("GET", "secrets/database", "secrets_not_provisioned"),
    ("POST", "executions/x", None),
    ("POST", "sessions/x", None),
    ("POST", "deregister", None),
]


class TestNotServed:
    @pytest.mark.parametrize(("method", "rest", "code"), NOT_SERVED)
    async def test_a_node_is_told_with_the_documented_code(
        self, nodes: Nodes, registered: Answer, method: str, rest: str, code: str | None
    ) -> None:
        path = f"/v1/nodes/{registered.json['node_id']}/{rest}"
        headers = {"Authorization": f"Bearer {bearer(registered)}"}

        assert_problem(await nodes.ask(method, path, headers=headers), 501, code)

    @pytest.mark.parametrize(("method", "rest"), [item[:2] for item in NOT_SERVED])
    async def test_nobody_else_is_told(
        self, nodes: Nodes, registered: Answer, method: str, rest: str
    ) -> None:
        headers = {"Authorization": f"Bearer {bearer(registered)}"}
        own = f"/v1/nodes/{registered.json['node_id']}/{rest}"

        assert_problem(await nodes.ask(method, own), 401, "unauthorized")
        other = await nodes.ask(method, f"/v1/nodes/{uuid7()}/{rest}", headers=headers)
        assert_problem(other, 403, "node_id_mismatch")

    async def test_a_batch_is_refused_unread(self, nodes: Nodes, registered: Answer) -> None:
        headers = {"Authorization": f"Bearer {bearer(registered)}", "Content-Encoding": "gzip"}
        path = f"/v1/nodes/{registered.json['node_id']}/logs"

        answer = await nodes.ask("POST", path, data=b"\x1f\x8b" * 20_000, headers=headers)

        assert_problem(answer, 501, "observability_ingest_not_provisioned")

    async def test_any_live_node_is_told_that_keys_are_not_rotated(
        self, nodes: Nodes, registered: Answer
    ) -> None:
        body = {"new_public_key": "A" * 43 + "="}
        headers = {"Authorization": f"Bearer {bearer(registered)}"}

        asked = await nodes.ask("POST", "/v1/keys/rotate", json=body, headers=headers)

        assert_problem(asked, 501, "keys_rotate_not_provisioned")
        assert_problem(await nodes.ask("POST", "/v1/keys/rotate", json=body), 401, "unauthorized")
