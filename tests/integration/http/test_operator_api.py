"""The operators' API over a real socket and a real database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg
import pytest
from click.testing import CliRunner
from uuid_utils.compat import uuid7
from yarl import URL

from function.contract.strategy import Phase
from reconciler.adapters.http.listener import listening
from reconciler.adapters.http.operators.operator_api import OperatorAPI
from reconciler.adapters.http.operators.operator_app import operator_app
from reconciler.adapters.http.operators.operator_auth import REQUESTS_PER_S, Gate
from reconciler.adapters.http.rate_limit import TokenBuckets
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.adapters.postgres.registration.operator_store import PostgresOperatorStore
from reconciler.domain.aggregate import ids
from reconciler.domain.events.catalogue import CATALOGUE
from reconciler.domain.identity import token as token_text
from reconciler.domain.identity.denial import Denial
from reconciler.main import cli
from reconciler.ports.operators import OperatorStore
from reconciler.ports.registration import Budget, Registered
from tests.contract.worlds import World, postgres_world
from tests.fakes.reviewer import InMemoryReviewer
from tests.integration.http.conftest import LOOPBACK, Answer, unasked_store
from tests.integration.http.test_register import assert_problem
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

READER, WRITER, STRANGER = "reader.jwt", "writer.jwt", "stranger.jwt"
PROJECT = f"/v1/projects/{samples.PROJECT}"
TOKENS = f"{PROJECT}/bootstrap-tokens"
OTHER_PROJECT = "0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0aff"
METADATA = {
    "id",
    "project_id",
    "resource_id",
    "generation",
    "kind",
    "env_prefix",
    "issued_at",
    "expires_at",
}
STANDS_FOR = {
    "ProvisionedResourceID": ("ProvisionedResource", None),
    "ResourceID": ("Resource", None),
    "NodeID": ("Node", None),
    "BootstrapTokenID": ("BootstrapToken", None),
    "ProjectID": ("Project", "shop"),
    "DomainID": ("Domain", "acme"),
    "BlueprintVersionID": ("BlueprintVersion", "generic-vm-v1alpha1"),
    "CloudCredentialID": ("CloudCredential", "demo-main"),
    "ManagementClusterID": ("ManagementCluster", "local"),
}
"""The ids that events tell, what each is of, and the name of what many resources share."""
UNRESOLVED = {"EventID": "the event itself, which `broker events list` shows"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client of the listener, and who is known there."""

    reviewer: InMemoryReviewer
    url: str
    session: aiohttp.ClientSession

    async def ask(self, method: str, path: str, token: str = READER, **options: Any) -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers = options.pop("headers", headers)
        url = URL(self.url + path, encoded=True)
        async with self.session.request(method, url, headers=headers, **options) as response:
            text = await response.text()
            return Answer(
                status=response.status,
                headers=dict(response.headers),
                text=text,
                json=await response.json(content_type=None) if text.startswith("{") else None,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators(Client):
    """A client, and the world behind the listener.

    Attributes:
        pool: What the listener reads through.
    """

    world: World
    pool: asyncpg.Pool


def _reviewer() -> InMemoryReviewer:
    reviewer = InMemoryReviewer()
    for token, user in ((READER, "ann"), (WRITER, "bob"), (STRANGER, "eve")):
        reviewer.know(token, user)
    for user, verbs in (("ann", ("get",)), ("bob", ("get", "delete", "post"))):
        for verb in verbs:
            reviewer.grant(user, verb, f"{PROJECT}/*")
    return reviewer


@asynccontextmanager
async def _listening(
    reviewer: InMemoryReviewer, store: OperatorStore, budget: Budget | None = None
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    app = operator_app({}, OperatorAPI(Gate(reviewer, budget), store))
    async with listening(app, LOOPBACK, tls=None) as url, aiohttp.ClientSession() as session:
        yield url, session


@pytest.fixture
async def operators(dsn: str) -> AsyncIterator[Operators]:
    reviewer = _reviewer()
    pool = await open_pool(dsn, size_max=4)
    async with (
        postgres_world(dsn) as world,
        _listening(reviewer, PostgresOperatorStore(pool)) as (url, session),
    ):
        yield Operators(reviewer=reviewer, url=url, session=session, world=world, pool=pool)
    await pool.close()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    reviewer = _reviewer()
    async with _listening(reviewer, unasked_store()) as (url, session):
        yield Client(reviewer=reviewer, url=url, session=session)


async def test_a_token_is_its_metadata_and_nothing_else(operators: Operators) -> None:
    resource = await operators.world.resource()
    token = await operators.world.token(resource)

    answer = await operators.ask("GET", f"{TOKENS}/{token.id}")

    assert answer.status == 200
    assert set(answer.json) == METADATA
    assert answer.json["id"] == str(token.id)
    assert answer.json["project_id"] == str(samples.PROJECT)
    assert answer.json["resource_id"] == str(resource.id)
    assert (answer.json["kind"], answer.json["env_prefix"]) == ("node", "prod")
    assert datetime.fromisoformat(answer.json["expires_at"]) == token.expires_at
    assert answer.headers["Cache-Control"] == "no-store"
    assert token_text.digest(token.plaintext).hex() not in answer.text


async def test_a_consumed_and_a_revoked_token_say_when(operators: Operators) -> None:
    world = operators.world
    spent, dropped = await world.resource("a"), await world.resource("b")
    consumed, revoked = await world.token(spent), await world.token(dropped)
    assert isinstance(await world.register(spent, consumed), Registered)
    await world.issuer.revoke(dropped.id)

    one = await operators.ask("GET", f"{TOKENS}/{consumed.id}")
    two = await operators.ask("GET", f"{TOKENS}/{revoked.id}")

    assert set(one.json) == METADATA | {"consumed_at"}
    assert set(two.json) == METADATA | {"revoked_at"}


async def test_tokens_come_in_pages(operators: Operators) -> None:
    resource = await operators.world.resource()
    issued = [await operators.world.token(resource, generation) for generation in (1, 2, 3)]

    first = await operators.ask("GET", f"{TOKENS}?limit=2")
    rest = await operators.ask("GET", f"{TOKENS}?limit=2&cursor={first.json['next_cursor']}")

    listed = [item["id"] for answer in (first, rest) for item in answer.json["items"]]
    assert listed == [str(token.id) for token in issued]
    assert rest.json["next_cursor"] is None


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=ten", "limit=%D9%A3", "cursor=last"]
)
async def test_a_page_that_is_none_is_400(operators: Operators, query: str) -> None:
    assert_problem(await operators.ask("GET", f"{TOKENS}?{query}"), 400, None)


async def test_a_projects_placement_is_told(operators: Operators) -> None:
    cluster = ids.management_cluster_id("local")
    missing = await operators.ask("GET", f"{PROJECT}/management-cluster-assignment")
    await operators.world.tenancy.assign_project(
        samples.PROJECT, cluster, namespace="shop", phase="Ready"
    )

    answer = await operators.ask("GET", f"{PROJECT}/management-cluster-assignment")

    assert_problem(missing, 404, "management_assignment_not_found")
    assert answer.status == 200
    assert answer.json["management_cluster_id"] == str(cluster)
    assert (answer.json["namespace_name"], answer.json["namespace_phase"]) == ("shop", "Ready")


async def test_a_token_is_revoked_once_and_by_name(
    operators: Operators, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    resource = await operators.world.resource()
    token = await operators.world.token(resource)

    first = await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)
    second = await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)

    assert (first.status, first.text) == (204, "")
    assert_problem(second, 409, None)
    late = await operators.world.register(resource, token)
    assert isinstance(late, Denial)
    assert late.code == "token_revoked"
    assert f"operator_revokes user='bob' project={samples.PROJECT} token={token.id}" in caplog.text
    (entry,) = await operators.pool.fetch("SELECT * FROM plexsphere.operator_audit")
    assert (entry["actor"], entry["action"]) == ("bob", "revoke-token")
    assert entry["project_id"] == samples.PROJECT
    assert entry["provisioned_resource_id"] == resource.id
    assert entry["bootstrap_token_id"] == token.id
    revoked = await operators.ask("GET", f"{TOKENS}/{token.id}")
    assert entry["at"] == datetime.fromisoformat(revoked.json["revoked_at"])


async def test_a_revocation_that_cannot_be_audited_does_not_happen(operators: Operators) -> None:
    token = await operators.world.token(await operators.world.resource())
    await operators.pool.execute("ALTER TABLE plexsphere.operator_audit RENAME TO hidden")

    answer = await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)

    assert_problem(answer, 500, None)
    assert "revoked_at" not in (await operators.ask("GET", f"{TOKENS}/{token.id}")).json


@pytest.mark.parametrize("change", ["UPDATE {} SET actor = 'eve'", "DELETE FROM {}", "TRUNCATE {}"])
async def test_who_revoked_is_never_rewritten(operators: Operators, change: str) -> None:
    token = await operators.world.token(await operators.world.resource())
    await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await operators.pool.execute(change.format("plexsphere.operator_audit"))


async def test_an_address_that_asks_too_often_is_429_and_nobody_is_asked(client: Client) -> None:
    answers = [await client.ask("GET", TOKENS, STRANGER) for _ in range(int(REQUESTS_PER_S) + 30)]

    limited = [answer for answer in answers if answer.status == 429]
    assert limited
    assert_problem(limited[0], 429, None)
    assert limited[0].headers["Retry-After"] == "1"
    assert len(client.reviewer.asked) == len(answers) - len(limited)
    async with client.session.get(f"{client.url}/healthz") as response:
        assert response.status == 200


async def test_a_revocation_that_loses_its_lock_is_503(operators: Operators) -> None:
    token = await operators.world.token(await operators.world.resource())
    database = await operators.pool.fetchval("SELECT current_database()")
    await operators.pool.execute(f"ALTER DATABASE {database} SET lock_timeout = '50ms'")
    await operators.pool.expire_connections()

    async with operators.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM plexsphere.provisioned_resources FOR UPDATE")
        answer = await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)

    assert_problem(answer, 503, "store_unavailable")


async def test_a_user_without_a_name_revokes_nothing(operators: Operators) -> None:
    operators.reviewer.know("nameless.jwt", "")
    operators.reviewer.grant("", "delete", f"{PROJECT}/*")
    token = await operators.world.token(await operators.world.resource())

    answer = await operators.ask("DELETE", f"{TOKENS}/{token.id}", "nameless.jwt")

    assert_problem(answer, 400, None)
    assert "revoked_at" not in (await operators.ask("GET", f"{TOKENS}/{token.id}")).json


@pytest.mark.parametrize(
    ("user", "stored"), [("bo\0b", '"bo\\u0000b"'), ("bo\ud800b", '"bo\\ud800b"')]
)
async def test_a_name_that_cannot_be_stored_is_audited_escaped(
    operators: Operators, user: str, stored: str
) -> None:
    operators.reviewer.know("odd.jwt", user)
    operators.reviewer.grant(user, "delete", f"{PROJECT}/*")
    token = await operators.world.token(await operators.world.resource())

    answer = await operators.ask("DELETE", f"{TOKENS}/{token.id}", "odd.jwt")

    assert answer.status == 204
    actor = await operators.pool.fetchval("SELECT actor FROM plexsphere.operator_audit")
    assert actor == stored


async def test_a_budget_of_which_nobody_spent_yet_is_the_one_that_counts(dsn: str) -> None:
    reviewer, budget = _reviewer(), TokenBuckets(per_second=1, monotonic=lambda: 0.0)
    pool = await open_pool(dsn, size_max=1)
    async with _listening(reviewer, PostgresOperatorStore(pool), budget) as (url, session):
        client = Client(reviewer=reviewer, url=url, session=session)
        statuses = [(await client.ask("GET", TOKENS)).status for _ in range(3)]
    await pool.close()

    assert statuses == [200, 429, 429]


async def test_a_consumed_token_cannot_be_revoked(operators: Operators) -> None:
    resource = await operators.world.resource()
    token = await operators.world.token(resource)
    assert isinstance(await operators.world.register(resource, token), Registered)

    answer = await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)

    assert_problem(answer, 409, None)
    assert "revoked_at" not in (await operators.ask("GET", f"{TOKENS}/{token.id}")).json


async def test_revoking_one_generation_leaves_the_other(operators: Operators) -> None:
    resource = await operators.world.resource()
    lost, current = [await operators.world.token(resource, number) for number in (1, 2)]

    assert (await operators.ask("DELETE", f"{TOKENS}/{lost.id}", WRITER)).status == 204

    assert isinstance(await operators.world.register(resource, current), Registered)


async def test_a_revocation_and_a_registration_have_one_winner(operators: Operators) -> None:
    for number in range(10):
        resource = await operators.world.resource(f"web-{number}")
        token = await operators.world.token(resource)

        answer, registered = await asyncio.gather(
            operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER),
            operators.world.register(resource, token),
        )

        won = isinstance(registered, Registered)
        assert answer.status == (409 if won else 204)
        if won:
            await operators.world.deregistrar.deregister(token.id)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_an_unknown_token_is_404(operators: Operators, method: str) -> None:
    assert_problem(await operators.ask(method, f"{TOKENS}/{uuid7()}", WRITER), 404, None)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_token_of_another_project_is_404(operators: Operators, method: str) -> None:
    token = await operators.world.token(await operators.world.resource())
    elsewhere = f"/v1/projects/{OTHER_PROJECT}/*"
    for verb in ("get", "delete"):
        operators.reviewer.grant("bob", verb, elsewhere)

    path = f"/v1/projects/{OTHER_PROJECT}/bootstrap-tokens/{token.id}"
    assert_problem(await operators.ask(method, path, WRITER), 404, None)

    assert "revoked_at" not in (await operators.ask("GET", f"{TOKENS}/{token.id}")).json


async def test_no_token_is_minted_here(operators: Operators) -> None:
    answer = await operators.ask("POST", TOKENS, WRITER, json={"kind": "node"})

    assert_problem(answer, 501, None)


ROUTES = [
    ("GET", f"{PROJECT}/management-cluster-assignment"),
    ("GET", TOKENS),
    ("POST", TOKENS),
    ("GET", f"{TOKENS}/{OTHER_PROJECT}"),
    ("DELETE", f"{TOKENS}/{OTHER_PROJECT}"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
class TestGate:
    @pytest.mark.parametrize(
        "header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Bearer a,b"]
    )
    async def test_without_a_bearer_it_is_401(
        self, client: Client, method: str, path: str, header: str | None
    ) -> None:
        headers = {} if header is None else {"Authorization": header}

        answer = await client.ask(method, path, headers=headers)

        assert_problem(answer, 401, None)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert client.reviewer.asked == []

    async def test_an_unknown_bearer_is_401(self, client: Client, method: str, path: str) -> None:
        assert_problem(await client.ask(method, path, "forged.jwt"), 401, None)

    async def test_a_user_without_the_right_is_403(
        self, client: Client, method: str, path: str
    ) -> None:
        assert_problem(await client.ask(method, path, STRANGER), 403, None)

    async def test_without_a_verdict_it_is_503_and_never_open(
        self, client: Client, method: str, path: str
    ) -> None:
        client.reviewer.available = False

        answer = await client.ask(method, path, WRITER)

        assert_problem(answer, 503, None)
        assert answer.headers["Retry-After"] == "5"

    async def test_the_verdict_is_asked_for_the_path_and_the_verb(
        self, client: Client, method: str, path: str
    ) -> None:
        await client.ask(method, f"{path}?limit=1", STRANGER)

        assert client.reviewer.asked == [(method.lower(), path)]


async def test_a_reader_revokes_nothing(operators: Operators) -> None:
    token = await operators.world.token(await operators.world.resource())

    assert_problem(await operators.ask("DELETE", f"{TOKENS}/{token.id}", READER), 403, None)

    assert "revoked_at" not in (await operators.ask("GET", f"{TOKENS}/{token.id}")).json


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/projects/{UUID(str(samples.PROJECT)).hex}/bootstrap-tokens",
        f"/v1/projects/{str(samples.PROJECT).upper()}/bootstrap-tokens",
        f"{PROJECT}/../{OTHER_PROJECT}/bootstrap-tokens/x",
        f"{PROJECT}/bootstrap-tokens/",
        f"{PROJECT}//bootstrap-tokens",
        f"{PROJECT}/bootstrap-tokens/me",
        "/v1/projects",
        "/v1/management-clusters",
        "/metrics",
    ],
)
async def test_no_other_spelling_and_no_other_path_is_served(client: Client, path: str) -> None:
    assert_problem(await client.ask("GET", path, WRITER), 404, None)


async def test_a_lost_store_is_503(operators: Operators) -> None:
    token = await operators.world.token(await operators.world.resource())
    # What a restart of Postgres looks like from here, for as long as this test runs.
    await operators.pool.close()

    for method, path in (("GET", TOKENS), ("GET", f"{TOKENS}/{token.id}")):
        assert_problem(await operators.ask(method, path), 503, "store_unavailable")
    lost = await operators.ask("DELETE", f"{TOKENS}/{token.id}", WRITER)
    assert_problem(lost, 503, "store_unavailable")


async def _left_behind(operators: Operators, *, deleted: bool = True) -> ids.NodeID:
    """Give a node up, and let its resource end without it."""
    world = operators.world
    resource = await world.resource()
    token = await world.token(resource)
    resource = await world.repository.update(replace(resource, bootstrap_token_id=token.id))
    registered = await world.register(resource, token)
    assert isinstance(registered, Registered)
    if deleted:
        now = datetime.now(UTC)
        going = await world.repository.record_deletion_intent(resource.request_deletion(now))
        given_up = replace(going, force_released_at=now)
        await world.repository.update(given_up.enter(Phase.DELETED, now))
    return registered.node_id


async def test_a_node_that_was_given_up_is_taken_out_once_by_name_and_reason(
    operators: Operators,
) -> None:
    node = await _left_behind(operators)
    path = f"{PROJECT}/nodes/{node}?reason=OPS-17%3A%20given%20up"

    answers = [await operators.ask("DELETE", path, WRITER) for _ in range(2)]

    assert [answer.status for answer in answers] == [204, 204]
    (entry,) = await operators.pool.fetch("SELECT * FROM plexsphere.operator_audit")
    assert (entry["actor"], entry["action"], entry["node_id"], entry["reason"]) == (
        "bob",
        "deregister-node",
        node,
        "OPS-17: given up",
    )
    out = "SELECT deregistered_at IS NOT NULL FROM plexsphere.nodes WHERE id = $1"
    assert await operators.pool.fetchval(out, node)
    back = """
    SELECT count(*) FROM plexsphere.mesh_free AS free
    JOIN plexsphere.nodes AS node ON node.mesh_ip = free.address
    WHERE node.id = $1 AND free.rests_until > now()
    """
    assert await operators.pool.fetchval(back, node) == 1
    told = "SELECT event_type FROM plexsphere.outbox_events WHERE aggregate_id = $1 ORDER BY id"
    assert [row[0] for row in await operators.pool.fetch(told, node)] == [
        "identity.NodeRegistered",
        "identity.NodeDeregistered",
    ]


async def test_a_node_whose_resource_is_alive_is_not_taken_out(operators: Operators) -> None:
    node = await _left_behind(operators, deleted=False)

    answer = await operators.ask("DELETE", f"{PROJECT}/nodes/{node}?reason=why", WRITER)

    assert_problem(answer, 409, None)
    live = "SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE id = $1"
    assert await operators.pool.fetchval(live, node)
    assert await operators.pool.fetchval("SELECT count(*) FROM plexsphere.operator_audit") == 0


@pytest.mark.parametrize(
    "query", ["", "?reason=", "?reason=%20", "?reason=a%0Ab", "?reason=" + "x" * 513]
)
async def test_a_node_is_taken_out_with_a_reason_alone(operators: Operators, query: str) -> None:
    node = await _left_behind(operators)

    answer = await operators.ask("DELETE", f"{PROJECT}/nodes/{node}{query}", WRITER)

    assert_problem(answer, 400, None)
    assert await operators.pool.fetchval("SELECT count(*) FROM plexsphere.operator_audit") == 0


async def test_a_node_of_another_project_and_a_reader_take_nothing_out(
    operators: Operators,
) -> None:
    node = await _left_behind(operators)
    operators.reviewer.grant("bob", "delete", f"/v1/projects/{OTHER_PROJECT}/*")

    stranger = f"/v1/projects/{OTHER_PROJECT}/nodes/{node}?reason=why"
    assert_problem(await operators.ask("DELETE", stranger, WRITER), 404, None)
    own = f"{PROJECT}/nodes/{node}?reason=why"
    assert_problem(await operators.ask("DELETE", own, READER), 403, None)
    live = "SELECT deregistered_at IS NULL FROM plexsphere.nodes WHERE id = $1"
    assert await operators.pool.fetchval(live, node)


async def test_an_id_is_resolved_to_the_names_it_stands_for(operators: Operators) -> None:
    world = operators.world
    resource = await world.resource()
    token = await world.token(resource)
    registered = await world.register(resource, token)
    assert isinstance(registered, Registered)
    kinds = {
        resource.id: "ProvisionedResource",
        resource.resource_id: "Resource",
        registered.node_id: "Node",
        token.id: "BootstrapToken",
    }

    for wanted, kind in kinds.items():
        answer = await operators.ask("GET", f"{PROJECT}/ids/{wanted}")
        assert answer.status == 200
        assert answer.json["kind"] == kind
        assert answer.json["provisioned_resource_id"] == str(resource.id)
        assert (answer.json["xr_kind"], answer.json["xr_name"]) == (
            resource.key.kind,
            resource.key.name,
        )
        assert answer.json["node_id"] == str(registered.node_id)
    assert_problem(await operators.ask("GET", f"{PROJECT}/ids/{OTHER_PROJECT}"), 404, None)
    (payload,) = await operators.pool.fetch(
        "SELECT payload FROM plexsphere.outbox_events WHERE event_type = 'identity.NodeRegistered'"
    )
    assert payload["payload"]["OwnerName"] == resource.key.name
    assert payload["payload"]["Namespace"] == resource.key.namespace


def _ids_told() -> set[str]:
    """Return the members of all payloads that are ids."""
    return {
        name
        for kind in CATALOGUE.values()
        for name, member in kind.schema()["properties"].items()
        if member.get("format") == "uuid"
    }


async def _ids_of_a_life(operators: Operators) -> dict[str, str]:
    """Let a node register; return each id that its events told, by its member's name."""
    world = operators.world
    resource = await world.resource()
    registered = await world.register(resource, await world.token(resource))
    assert isinstance(registered, Registered)
    rows = await operators.pool.fetch("SELECT payload FROM plexsphere.outbox_events")
    payloads = [row["payload"] for row in rows]
    return {name: payload[name] for payload in payloads for name in STANDS_FOR if name in payload}


async def test_every_id_of_every_event_is_resolved_or_says_why_not(operators: Operators) -> None:
    told = await _ids_of_a_life(operators)

    assert _ids_told() == STANDS_FOR.keys() | UNRESOLVED.keys()
    assert told.keys() == STANDS_FOR.keys()
    for field, (kind, name) in STANDS_FOR.items():
        answer = await operators.ask("GET", f"{PROJECT}/ids/{told[field]}")
        assert answer.status == 200, field
        assert (answer.json["kind"], answer.json.get("name")) == (kind, name)
        assert (answer.json["id"], answer.json["project"]) == (told[field], "shop")
        assert ("phase" in answer.json) is (name is None)


async def test_what_a_project_does_not_use_is_not_resolved_there(operators: Operators) -> None:
    told = await _ids_of_a_life(operators)
    neighbour = await operators.world.tenancy.ensure_project(None, "neighbour", "acme")
    operators.reviewer.grant("ann", "get", f"/v1/projects/{neighbour}/*")

    answers = {
        field: await operators.ask("GET", f"/v1/projects/{neighbour}/ids/{told[field]}")
        for field in STANDS_FOR
    }

    shared = answers.pop("DomainID")
    assert (shared.status, shared.json["name"]) == (200, "acme")
    for answer in answers.values():
        assert_problem(answer, 404, None)


async def test_an_enrolled_resource_has_a_blueprint_and_a_credential_without_a_name(
    operators: Operators,
) -> None:
    blueprint, credential = ids.blueprint_version_id(""), ids.cloud_credential_id("")
    await operators.world.resource(
        accepted=samples.ENROLLED, blueprint_version_id=blueprint, cloud_credential_id=credential
    )

    for wanted, kind in ((blueprint, "BlueprintVersion"), (credential, "CloudCredential")):
        answer = await operators.ask("GET", f"{PROJECT}/ids/{wanted}")
        assert (answer.status, answer.json["kind"], answer.json["name"]) == (200, kind, "")


async def test_the_command_takes_a_node_out_and_refuses_one_that_is_alive(
    operators: Operators, dsn: str
) -> None:
    node = await _left_behind(operators)
    said = await asyncio.to_thread(_deregister, dsn, node)
    again = await asyncio.to_thread(_deregister, dsn, node)
    unknown = await asyncio.to_thread(_deregister, dsn, ids.NodeID(uuid7()))

    assert (said[0], again[0], unknown[0]) == (0, 0, 1)
    assert "is deregistered" in said[1]
    assert "already" in again[1]
    assert "no node with this id" in unknown[1]
    (entry,) = await operators.pool.fetch("SELECT * FROM plexsphere.operator_audit")
    assert (entry["node_id"], entry["reason"]) == (node, "OPS-17")


def _deregister(dsn: str, node: ids.NodeID) -> tuple[int, str]:
    flags = ["nodes", "deregister", str(node), "--reason", "OPS-17"]
    result = CliRunner().invoke(cli, flags, env={"PLEXSPHERE_DSN": dsn})
    return result.exit_code, result.output
