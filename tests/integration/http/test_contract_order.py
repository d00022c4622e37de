"""The documented order of checks: a request with every fault, healed one fault at a time."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from reconciler.adapters.http.node import node_operations
from reconciler.adapters.http.node.node_operations import Operation
from tests.contract.worlds import unknown_token
from tests.integration.http.both import both
from tests.integration.http.conftest import Answer, Nodes, bearer, heartbeat, wire
from tests.integration.http.test_register import assert_problem

pytestmark = pytest.mark.integration
__all__ = ["both"]

HOSTS = 6
"""Of the mesh of the tests' world."""


def in_order(answers: Iterable[tuple[int, str | None]], operation: Operation) -> bool:
    """Whether answers come in the order in which the table, and so the document, has them."""
    table = iter(
        (refusal.status, refusal.code if refusal.code and refusal.told else None)
        for refusal in (*operation.asked_first, *operation.refusals)
    )
    return all(answer in table for answer, _ in groupby(answers))


def told(answer: Answer) -> tuple[int, str | None]:
    if answer.status < 400:
        return answer.status, None
    assert_problem(answer, answer.status, answer.json.get("code"))
    return answer.status, answer.json.get("code")


async def test_a_registration_is_checked_in_the_documented_order(both: Nodes) -> None:
    world = both.world
    others = []
    for number in range(HOSTS):
        other = await world.resource(f"other-{number}")
        token = await world.token(other)
        sent = wire(other, token, nonce=f"nonce-{number}")
        registered = await both.register(sent)
        # Whoever reported makes a repetition a theft, and no retry.
        assert (await both.heartbeat(registered)).status == 200
        others.append((other, token, sent))
    other, consumed, sent = others[0]
    resource = await world.resource("late")
    revoked = await world.token(resource, 1)
    await world.issuer.revoke(resource.id)
    expired = await world.token(resource, 2)
    good = wire(resource, await world.token(resource, 3), nonce="fresh")
    await world.backdoor.age(expired.id, timedelta(hours=2))

    body: dict[str, Any] = {
        "hostname": "web-1",
        "project_id": "",
        "resource_handle": other.xr_name,
        "bootstrap_token": "psb_",
        "nonce": sent["nonce"],
        "public_key": "short",
    }
    heals: list[tuple[dict[str, Any], tuple[int, str | None]]] = [
        ({}, (400, None)),
        ({"hostname": None}, (422, "invariant_violation")),
        ({"project_id": str(uuid7())}, (422, "bootstrap_token_invalid")),
        (
            {"bootstrap_token": good["bootstrap_token"].replace("_node_", "_bridge_")},
            (400, "public_key_invalid"),
        ),
        ({"public_key": sent["public_key"]}, (403, "kind_mismatch")),
        ({"bootstrap_token": unknown_token().reveal()}, (403, None)),
        ({"bootstrap_token": revoked.plaintext.reveal()}, (403, "token_revoked")),
        ({"bootstrap_token": consumed.plaintext.reveal()}, (403, "token_consumed")),
        ({"bootstrap_token": expired.plaintext.reveal()}, (403, "token_expired")),
        ({"bootstrap_token": good["bootstrap_token"]}, (403, "project_mismatch")),
        ({"project_id": good["project_id"]}, (403, "nonce_collision")),
        ({"nonce": good["nonce"]}, (404, "resource_not_found")),
        ({"resource_handle": good["resource_handle"]}, (409, None)),
        ({"public_key": good["public_key"]}, (503, "pool_exhausted")),
    ]
    answers = []
    for changes, _ in heals:
        merged = {**body, **changes}
        body = {name: value for name, value in merged.items() if value is not None}
        answers.append(told(await both.register(body)))

    assert answers == [expected for _, expected in heals]
    assert in_order(answers, node_operations.REGISTER)
    await world.deregistrar.deregister(others[-1][1].id)
    assert told(await both.register(body)) == (201, None)


async def test_a_heartbeat_is_checked_in_the_documented_order(both: Nodes) -> None:
    resource = await both.world.resource("a")
    registered = await both.register(wire(resource, await both.world.token(resource)))
    forged = base64.urlsafe_b64encode(bytes(48)).decode()
    good = heartbeat()
    late = (datetime.now(UTC) - timedelta(minutes=2)).isoformat()
    body: dict[str, Any] = {
        "client_now": late, "binary_checksum": "", "binary_version": "", "nat_summary": None,
        "uptime": 1,
    }  # fmt: skip
    asked: list[tuple[str | None, str, dict[str, Any], tuple[int, str | None]]] = [
        (None, "other", {}, (401, "unauthorized")),
        (f"nsk_plexd_{forged}", "other", {}, (401, "nsk_invalid")),
        (bearer(registered), "other", {}, (403, "node_id_mismatch")),
        (bearer(registered), "own", {}, (400, "malformed_heartbeat_request")),
        (bearer(registered), "own", {"uptime": None}, (400, "malformed_heartbeat_request")),
        (bearer(registered), "own", {"nat_summary": {}}, (400, "clock_skew")),
        (
            bearer(registered),
            "own",
            {"client_now": good["client_now"]},
            (400, "binary_checksum_empty"),
        ),
        (
            bearer(registered),
            "own",
            {"binary_checksum": good["binary_checksum"]},
            (400, "binary_version_empty"),
        ),
        (bearer(registered), "own", {"binary_version": "v0.8.0"}, (200, None)),
    ]
    paths = {"other": str(uuid7()), "own": registered.json["node_id"]}
    answers = []
    for credential, whose, changes, _ in asked:
        body.update(changes)
        if body.get("uptime", 1) is None:
            del body["uptime"]
        headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
        path = f"/v1/nodes/{paths[whose]}/heartbeat"
        answers.append(told(await both.ask("POST", path, json=body, headers=headers)))

    assert answers == [expected for *_, expected in asked]
    assert in_order(answers[:-1], node_operations.HEARTBEAT)
