"""Heartbeats over real sockets: who sends them, and what they must say."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from tests.integration.http.both import fakes as nodes
from tests.integration.http.both import registered
from tests.integration.http.conftest import Answer, Nodes, bearer, heartbeat, wire
from tests.integration.http.test_register import assert_problem

pytestmark = pytest.mark.integration
__all__ = ["nodes", "registered"]


async def test_a_live_node_is_answered(nodes: Nodes, registered: Answer) -> None:
    answer = await nodes.heartbeat(registered)

    assert answer.status == 200
    assert set(answer.json) == {"accepted_at", "reconcile", "rotate_keys"}
    assert answer.json["reconcile"] is answer.json["rotate_keys"] is False
    assert datetime.fromisoformat(answer.json["accepted_at"]).tzinfo is not None


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic abc",
        "Bearer",
        "Bearer abc",
        "Bearer nsk__" + "A" * 64,
        "Bearer nsk_plexd_" + "A" * 63,
        "Bearer nsk_plexd_" + "!" * 64,
    ],
)
async def test_no_bearer_is_401(nodes: Nodes, registered: Answer, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}

    answer = await nodes.heartbeat(registered, headers=headers)

    assert_problem(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("known_node", [True, False])
async def test_a_key_that_is_not_the_nodes_is_401(
    nodes: Nodes, registered: Answer, *, known_node: bool
) -> None:
    node_id = UUID(registered.json["node_id"]) if known_node else uuid7()
    forged = base64.urlsafe_b64encode(node_id.bytes + bytes(32)).decode()

    answer = await nodes.heartbeat(
        registered, headers={"Authorization": f"Bearer nsk_plexd_{forged}"}
    )

    assert_problem(answer, 401, "nsk_invalid")


async def test_the_raw_key_is_no_bearer(nodes: Nodes, registered: Answer) -> None:
    headers = {"Authorization": f"Bearer {registered.json['nsk']}"}

    assert_problem(await nodes.heartbeat(registered, headers=headers), 401, "unauthorized")


@pytest.mark.parametrize("node_id", ["0197b1a2-0000-7000-8000-000000000000", "me"])
async def test_another_nodes_path_is_403(nodes: Nodes, registered: Answer, node_id: str) -> None:
    answer = await nodes.heartbeat(registered, node_id=node_id)

    assert_problem(answer, 403, "node_id_mismatch")


async def test_a_deregistered_node_is_403_and_no_peer(nodes: Nodes) -> None:
    one, two = await nodes.world.resource("a"), await nodes.world.resource("b")
    token = await nodes.world.token(one)
    first = await nodes.register(wire(one, token))

    await nodes.world.deregistrar.deregister(token.id)

    assert_problem(await nodes.heartbeat(first), 403, "node_deregistered")
    second = await nodes.register(wire(two, await nodes.world.token(two), nonce="b"))
    assert second.json["peer_snapshot"] == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"binary_checksum": ""}, "binary_checksum_empty"),
        ({"binary_checksum": "A" * 43}, "binary_checksum_empty"),
        ({"binary_checksum": "A" * 64}, "binary_checksum_empty"),
        ({"binary_checksum": None}, "malformed_heartbeat_request"),
        ({"binary_version": "  "}, "binary_version_empty"),
        ({"binary_version": ""}, "binary_version_empty"),
        ({"binary_version": "v\u0000"}, "malformed_heartbeat_request"),
        ({"binary_version": "v" * 300}, "malformed_heartbeat_request"),
        ({"client_now": "yesterday"}, "malformed_heartbeat_request"),
        ({"client_now": "2026-11-21T12:00:00"}, "malformed_heartbeat_request"),
        ({"client_now": "20261121T120000Z"}, "malformed_heartbeat_request"),
        ({"client_now": "2026-11-21 12:00:00Z"}, "malformed_heartbeat_request"),
        ({"client_now": "0001-01-01T00:00:00+23:59"}, "clock_skew"),
        ({"client_now": "9999-12-31T23:59:59-23:59"}, "clock_skew"),
        ({"client_now": 12}, "malformed_heartbeat_request"),
        ({"nat_summary": None}, "malformed_heartbeat_request"),
        ({"nat_summary": []}, "malformed_heartbeat_request"),
        ({"nat_summary": {}, "binary_checksum": ""}, "binary_checksum_empty"),
        ({"uptime": 3}, "malformed_heartbeat_request"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_heartbeat_out_of_order_is_400(
    nodes: Nodes, registered: Answer, changes: dict[str, Any], code: str
) -> None:
    answer = await nodes.heartbeat(registered, changes=changes)

    assert_problem(answer, 400, code)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_an_hour_off_is_400(
    nodes: Nodes, registered: Answer, hours: int
) -> None:
    there = datetime.now(UTC) + timedelta(hours=hours)

    answer = await nodes.heartbeat(registered, changes={"client_now": there.isoformat()})

    assert_problem(answer, 400, "clock_skew")


@pytest.mark.parametrize(
    "changes",
    [
        {"binary_checksum": "0123456789abcdef" * 4},
        {"nat_summary": {"endpoint": "203.0.113.7:51820", "nat_type": "full_cone"}},
        {"binary_version": "dev"},
    ],
    ids=str,
)
async def test_both_forms_of_a_checksum_and_any_summary_are_taken(
    nodes: Nodes, registered: Answer, changes: dict[str, Any]
) -> None:
    assert (await nodes.heartbeat(registered, changes=changes)).status == 200


async def test_the_nanoseconds_of_go_are_taken(nodes: Nodes, registered: Answer) -> None:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.123456789Z"

    assert (await nodes.heartbeat(registered, changes={"client_now": now})).status == 200


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("nat_summary", "malformed_heartbeat_request"),
        ("client_now", "malformed_heartbeat_request"),
        ("binary_checksum", "binary_checksum_empty"),
        ("binary_version", "binary_version_empty"),
    ],
)
async def test_a_missing_field_is_400(
    nodes: Nodes, registered: Answer, field: str, code: str
) -> None:
    body = heartbeat()
    del body[field]

    answer = await nodes.ask(
        "POST",
        f"/v1/nodes/{registered.json['node_id']}/heartbeat",
        json=body,
        headers={"Authorization": f"Bearer {bearer(registered)}"},
    )

    assert_problem(answer, 400, code)
    assert field in answer.json["detail"]
