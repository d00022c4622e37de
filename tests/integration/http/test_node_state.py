"""`GET /v1/nodes/{id}/state` over HTTP, on fakes and on a real database: contracts §1.6."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from dev.agent import plexd
from tests.integration.http.both import both, pull
from tests.integration.http.conftest import Answer, Nodes, bearer, wire
from tests.integration.http.test_register import assert_problem
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration
__all__ = ["both"]

NO_ENTRIES: dict[str, list[str]] = {"metadata": [], "data": [], "reports": []}


async def node(nodes: Nodes, name: str) -> tuple[Answer, str]:
    """Register a node; returns the reply and the public key it sent."""
    resource = await nodes.world.resource(name)
    body = wire(resource, await nodes.world.token(resource), nonce=f"nonce-of-{name}")
    return await nodes.register(body), body["public_key"]


async def test_every_block_is_there_in_the_shape_that_go_decodes(both: Nodes) -> None:
    registered, _ = await node(both, "a")

    answer = await pull(both, registered)

    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    changed_at = answer.json["reachability"].pop("changed_at")
    assert datetime.fromisoformat(changed_at).tzinfo is not None
    assert answer.json == {
        "peers": [],
        "reachability": {"state": "never_reported"},
        "policy": None,
        "bridge": None,
        "state": NO_ENTRIES,
        "reports": NO_ENTRIES,
        "executions": [],
        "sessions": [],
    }


async def test_a_heartbeat_makes_it_healthy(both: Nodes) -> None:
    registered, _ = await node(both, "a")
    accepted = await both.heartbeat(registered)

    reachability = (await pull(both, registered)).json["reachability"]

    assert reachability["state"] == "healthy"
    assert reachability["last_heartbeat_at"] == accepted.json["accepted_at"]


async def test_peers_are_the_other_live_nodes_by_id(both: Nodes) -> None:
    registered = [await node(both, name) for name in ("a", "b", "c")]

    first = await pull(both, registered[0][0])

    assert first.json["peers"] == sorted(
        (
            {"node_id": reply["node_id"], "mesh_ip": reply["mesh_ip"], "public_key": key}
            for reply, key in ((answer.json, key) for answer, key in registered[1:])
        ),
        key=lambda peer: peer["node_id"],
    )


async def test_the_agent_takes_it(both: Nodes) -> None:
    registered, _ = await node(both, "a")
    await node(both, "b")

    assert plexd.accept_state((await pull(both, registered)).text.encode()) == 1


async def test_who_left_is_no_peer(both: Nodes) -> None:
    staying, _ = await node(both, "a")
    resource = await both.world.resource("b")
    token = await both.world.token(resource)
    await both.register(wire(resource, token, nonce="b"))
    assert len((await pull(both, staying)).json["peers"]) == 1

    await both.world.deregistrar.deregister(token.id)

    assert (await pull(both, staying)).json["peers"] == []


async def test_another_projects_nodes_are_no_peers(both: Nodes) -> None:
    ours, _ = await node(both, "a")
    other = await both.world.tenancy.ensure_project(None, "other", "acme")
    key = replace(samples.resource().key, project_id=other, name="b")
    resource = await both.world.resource("b", project_id=other, key=key)
    theirs = await both.register(wire(resource, await both.world.token(resource), nonce="b"))
    assert theirs.status == 201

    assert theirs.json["peer_snapshot"] == []
    assert (await pull(both, ours)).json["peers"] == []
    assert (await pull(both, theirs)).json["peers"] == []


async def test_a_pull_is_a_report(both: Nodes) -> None:
    resource = await both.world.resource("a")
    body = wire(resource, await both.world.token(resource))
    registered = await both.register(body)
    await pull(both, registered)

    assert_problem(await both.register(body), 403, "token_consumed")


async def test_a_replaced_key_is_told_so(both: Nodes) -> None:
    resource = await both.world.resource("a")
    body = wire(resource, await both.world.token(resource))
    lost, retried = await both.register(body), await both.register(body)

    assert (await pull(both, retried)).status == 200
    answer = await pull(both, lost)

    assert_problem(answer, 401, "nsk_revoked")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_the_key_of_the_first_answer_counts_when_it_reports_first(both: Nodes) -> None:
    resource = await both.world.resource("a")
    body = wire(resource, await both.world.token(resource))
    first, second = await both.register(body), await both.register(body)

    assert (await pull(both, first)).status == 200

    assert_problem(await pull(both, second), 401, "nsk_revoked")
    assert (await pull(both, first)).status == 200
    assert (await both.heartbeat(first)).status == 200


async def test_asking_for_what_is_not_served_is_a_report_too(both: Nodes) -> None:
    resource = await both.world.resource("a")
    body = wire(resource, await both.world.token(resource))
    registered = await both.register(body)
    path = f"/v1/nodes/{registered.json['node_id']}/events"
    headers = {"Authorization": f"Bearer {bearer(registered)}"}

    assert (await both.ask("GET", path, headers=headers)).status == 501

    assert_problem(await both.register(body), 403, "token_consumed")


async def test_who_left_pulls_nothing(both: Nodes) -> None:
    resource = await both.world.resource("a")
    token = await both.world.token(resource)
    registered = await both.register(wire(resource, token))
    await both.world.deregistrar.deregister(token.id)

    assert_problem(await pull(both, registered), 403, "node_deregistered")
