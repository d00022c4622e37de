"""`POST /v1/register` over HTTP, on a real database: contracts §1.3 as nodes meet it."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World, unknown_token
from tests.integration.http.conftest import Answer, Nodes, bearer, wire
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

PROBLEM = "application/problem+json"
REPLY = {
    "node_id", "mesh_ip", "signing_public_key", "signing_key_id", "nsk", "peer_snapshot",
    "domain_mesh_cidr",
}  # fmt: skip


def assert_problem(answer: Answer, status: int, code: str | None) -> None:
    assert answer.status == status
    assert answer.headers["Content-Type"].startswith(PROBLEM)
    assert {"type", "title", "status", "detail", "instance"} <= set(answer.json)
    assert answer.json["status"] == status
    assert answer.json.get("code") == code


async def test_the_reply_has_exactly_the_contracts_fields(nodes: Nodes) -> None:
    resource = await nodes.world.resource()

    answer = await nodes.register(wire(resource, await nodes.world.token(resource)))

    assert answer.status == 201
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["Cache-Control"] == "no-store"
    reply = answer.json
    assert set(reply) == REPLY
    assert UUID(reply["node_id"]).version == 7
    assert ipaddress.ip_address(reply["mesh_ip"]) in ipaddress.ip_network(reply["domain_mesh_cidr"])
    assert len(base64.b64decode(reply["signing_public_key"], validate=True)) == 32
    assert len(reply["nsk"]) == 44
    assert reply["peer_snapshot"] == []


async def test_peers_are_listed_with_their_keys(nodes: Nodes) -> None:
    one, two = await nodes.world.resource("a"), await nodes.world.resource("b")
    body = wire(one, await nodes.world.token(one))
    first = await nodes.register(body)

    second = await nodes.register(wire(two, await nodes.world.token(two), nonce="other"))

    assert second.json["peer_snapshot"] == [
        {
            "node_id": first.json["node_id"],
            "mesh_ip": first.json["mesh_ip"],
            "public_key": body["public_key"],
        }
    ]


@pytest.mark.parametrize("present", ["resource_id", "both"])
async def test_the_first_contracts_name_of_the_handle_is_taken(nodes: Nodes, present: str) -> None:
    resource = await nodes.world.resource()
    body = wire(resource, await nodes.world.token(resource), resource_id=resource.xr_name)
    if present == "resource_id":
        del body["resource_handle"]

    assert (await nodes.register(body)).status == 201


async def test_two_different_handles_are_refused(nodes: Nodes) -> None:
    resource = await nodes.world.resource()
    body = wire(resource, await nodes.world.token(resource), resource_id="pr-other")

    assert_problem(await nodes.register(body), 422, "invariant_violation")


Change = dict[str, Any]
Case = Callable[[World, ProvisionedResource, IssuedToken], Awaitable[Change]]


def changed(**changes: Any) -> Case:
    async def case(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
        return changes

    return case


async def unknown(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    return {"bootstrap_token": unknown_token().reveal()}


async def revoked(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    await world.issuer.revoke(resource.id)
    return {}


async def expired(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    await world.backdoor.age(token.id, timedelta(hours=2))
    return {}


async def collision(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    other = await world.resource("other")
    await world.register(other, await world.token(other), nonce="taken")
    return {"nonce": "taken"}


async def other_handle(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    return {"resource_handle": (await world.resource("other")).xr_name}


async def deleting(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))
    return {}


async def full(world: World, resource: ProvisionedResource, token: IssuedToken) -> Change:
    for item in range(6):
        other = await world.resource(f"other-{item}")
        await world.register(other, await world.token(other))
    return {}


LONG = "x" * 4097
KEY = base64.b64encode(b"k" * 32).decode()
DENIALS: list[tuple[str, Case, int, str | None]] = [
    ("no project", changed(project_id=None), 422, "invariant_violation"),
    ("empty project", changed(project_id=""), 422, "invariant_violation"),
    ("zero project", changed(project_id=str(UUID(int=0))), 422, "invariant_violation"),
    ("project no UUID", changed(project_id="shop"), 422, "invariant_violation"),
    ("no handle", changed(resource_handle=None), 422, "invariant_violation"),
    ("long handle", changed(resource_handle=LONG), 422, "invariant_violation"),
    ("no token", changed(bootstrap_token=None), 422, "invariant_violation"),
    ("long token", changed(bootstrap_token=LONG), 422, "invariant_violation"),
    ("no nonce", changed(nonce=None), 422, "invariant_violation"),
    ("long nonce", changed(nonce=LONG), 422, "invariant_violation"),
    ("no key", changed(public_key=None), 422, "invariant_violation"),
    ("long extra", changed(requested_resource_id=LONG), 422, "invariant_violation"),
    ("token unparseable", changed(bootstrap_token="psb_"), 422, "bootstrap_token_invalid"),
    ("short key", changed(public_key=KEY[4:]), 400, "public_key_invalid"),
    ("zero key", changed(public_key="A" * 43 + "="), 400, "public_key_invalid"),
    ("key not base64", changed(public_key="-" * 43 + "="), 400, "public_key_invalid"),
    ("second text of a key", changed(public_key=KEY[:42] + "t="), 400, "public_key_invalid"),
    ("unknown token", unknown, 403, None),
    ("revoked token", revoked, 403, "token_revoked"),
    ("expired token", expired, 403, "token_expired"),
    ("another project", changed(project_id=str(uuid7())), 403, "project_mismatch"),
    ("nonce of another", collision, 403, "nonce_collision"),
    ("another handle", other_handle, 404, "resource_not_found"),
    ("deletion requested", deleting, 403, "token_revoked"),
    ("mesh full", full, 503, "pool_exhausted"),
    ("number for text", changed(nonce=7), 400, None),
    ("unknown field", changed(hostname="web-1"), 400, None),
]


@pytest.mark.parametrize(
    ("case", "status", "code"),
    [item[1:] for item in DENIALS],
    ids=[item[0] for item in DENIALS],
)
async def test_a_denial_has_status_and_code_and_no_effect(
    nodes: Nodes, case: Case, status: int, code: str | None
) -> None:
    world = nodes.world
    resource = await world.resource()
    token = await world.token(resource)
    changes = await case(world, resource, token)
    before = await world.issuer.state(token.id)
    events = await world.backdoor.events(resource.id)
    world.registered.clear()

    answer = await nodes.register(wire(resource, token, **changes))

    assert_problem(answer, status, code)
    assert token.plaintext.reveal() not in answer.text
    assert await world.issuer.state(token.id) is before
    assert not await world.deregistrar.node_registered(token.id)
    assert await world.backdoor.events(resource.id) == events
    assert world.registered == []
    assert ("Retry-After" in answer.headers) == (status == 503)


async def test_a_token_is_consumed_once(nodes: Nodes) -> None:
    resource = await nodes.world.resource()
    token = await nodes.world.token(resource)
    await nodes.register(wire(resource, token))

    again = await nodes.register(wire(resource, token, nonce="another"))

    assert_problem(again, 403, "token_consumed")
    assert await nodes.world.issuer.state(token.id) is BootstrapState.CONSUMED


async def test_two_racing_nodes_make_one(nodes: Nodes, pool: asyncpg.Pool) -> None:
    resource = await nodes.world.resource()
    token = await nodes.world.token(resource)

    answers = await asyncio.gather(
        *(nodes.register(wire(resource, token, nonce=f"n{item}")) for item in range(8))
    )

    assert sorted(answer.status for answer in answers) == [201] + [403] * 7
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.nodes") == 1
    assert nodes.world.registered == [resource.id]


async def test_a_lost_reply_strands_nobody(nodes: Nodes) -> None:
    resource = await nodes.world.resource()
    body = wire(resource, await nodes.world.token(resource))
    lost = await nodes.register(body)

    retried = await nodes.register(body)

    assert retried.status == 201
    assert retried.json["node_id"] == lost.json["node_id"]
    assert retried.json["nsk"] != lost.json["nsk"]
    assert (await nodes.heartbeat(retried)).status == 200
    assert_problem(await nodes.heartbeat(lost), 401, "nsk_revoked")


async def test_of_two_answers_the_key_that_reports_first_counts(nodes: Nodes) -> None:
    resource = await nodes.world.resource()
    body = wire(resource, await nodes.world.token(resource))
    first, second = await asyncio.gather(*(nodes.register(body) for _ in range(2)))
    assert first.json["nsk"] != second.json["nsk"]

    answers = await asyncio.gather(*(nodes.heartbeat(each) for each in (first, second)))

    assert sorted(answer.status for answer in answers) == [200, 401]
    (refused,) = (answer for answer in answers if answer.status == 401)
    assert_problem(refused, 401, "nsk_revoked")


async def test_a_retry_at_the_same_moment_is_one_node(nodes: Nodes, pool: asyncpg.Pool) -> None:
    resource = await nodes.world.resource()
    body = wire(resource, await nodes.world.token(resource))

    answers = await asyncio.gather(*(nodes.register(body) for _ in range(5)))

    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["node_id"] for answer in answers}) == 1
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.nodes") == 1


async def test_a_lost_database_is_a_passing_trouble(nodes: Nodes, pool: asyncpg.Pool) -> None:
    resource = await nodes.world.resource()
    body = wire(resource, await nodes.world.token(resource))
    await pool.execute("ALTER TABLE plexsphere.nodes RENAME TO hidden")
    broken = await nodes.register(body)
    await pool.execute("ALTER TABLE plexsphere.hidden RENAME TO nodes")

    assert_problem(broken, 500, None)
    assert "hidden" not in broken.text
    assert (await nodes.register(body)).status == 201


async def test_no_secret_is_logged_told_or_stored(
    nodes: Nodes, pool: asyncpg.Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    resource = await nodes.world.resource()
    token = await nodes.world.token(resource)
    registered = await nodes.register(wire(resource, token))
    answers = [
        await nodes.heartbeat(registered),
        await nodes.register(wire(resource, token, nonce="another")),
        await nodes.register(wire(resource, token, nonce=7)),
        await nodes.register({token.plaintext.reveal(): 1}),
        await nodes.ask("POST", "/v1/register", data=token.plaintext.reveal()),
        await nodes.ask("GET", f"/{token.plaintext.reveal()}"),
    ]

    dump = await _dump(pool)

    plaintext, nsk = token.plaintext.reveal(), registered.json["nsk"]
    forbidden = {
        "token": plaintext,
        "token as bytes": plaintext.encode().hex(),
        "random part": plaintext.rpartition("_")[2],
        "key": nsk,
        "key as bytes": base64.b64decode(nsk).hex(),
        "bearer": bearer(registered),
    }
    told = "".join(answer.text for answer in answers)
    for name, value in forbidden.items():
        assert value not in caplog.text, name
        assert value not in told, name
        assert value not in dump, name
    assert str(resource.id) in dump


async def _dump(pool: asyncpg.Pool) -> str:
    tables = await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'plexsphere'")
    rows: list[str] = []
    for table in tables:
        name = f'plexsphere."{table[0]}"'
        found = await pool.fetch(f"SELECT t::text FROM {name} AS t")  # noqa: S608 - own tables
        rows.extend(row[0] for row in found)
    return "\n".join(rows)
