"""The OpenAPI document against the routes, and against one real answer of every kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner
from jsonschema import Draft202012Validator, FormatChecker

from reconciler.adapters.http.listener import listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.http.node.node_operations import BEARER, OPERATIONS, Operation
from reconciler.adapters.http.node.openapi import document
from reconciler.commands.openapi import openapi, text
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.peers import Peer, Peers
from reconciler.domain.identity.registration_body import RegistrationBody
from reconciler.ports.registration import MeshView, NodeState, Registered
from tests.integration.http.conftest import LOOPBACK, heartbeat

pytestmark = pytest.mark.integration

KEPT = Path(__file__).parents[3] / "docs" / "openapi.json"
DOCUMENT = document()
NODE = ids.NodeID(UUID(int=7))
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PEER = Peer(node_id=ids.NodeID(UUID(int=8)), mesh_ip="100.64.0.2", public_key=bytes(range(32)))
STATES = (
    NodeState(peers=Peers.of([PEER]), last_heartbeat_at=NOW, changed_at=NOW, now=NOW),
    NodeState(peers=Peers(), last_heartbeat_at=None, changed_at=NOW, now=NOW),
)
REGISTERED = Registered(
    node_id=NODE,
    nsk=bytes(32),
    mesh=MeshView(
        cidr="100.64.0.0/10",
        signing_key_id="did:web:example.org#key-1",
        signing_public_key=bytes(32),
        mesh_ip="100.64.0.1",
        peers=Peers.of([PEER]),
    ),
)
REGISTRATION = {
    "project_id": str(UUID(int=1)),
    "resource_handle": "pr-1",
    "bootstrap_token": "psb_prod_" + "a" * 26 + "_node_" + "a" * 26,
    "nonce": "n",
    "public_key": "A" * 43 + "=",
}
JSON = {"Content-Type": "application/json"}


@dataclass(slots=True)
class Scripted:
    """A service that answers what it is told to; also a budget."""

    bearer: Denial | None = None
    answer: Denial | BaseException | None = None
    wait_s: int | None = None
    states: Iterator[NodeState] = field(default_factory=lambda: iter(STATES))

    def take(self, key: str) -> int | None:
        return self.wait_s

    def give_back(self, key: str) -> None:
        """Count nothing."""

    def _refused(self) -> Denial | None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def authenticate(
        self, credential: str | None, *, path_node: ids.NodeID | None = None, any_node: bool = False
    ) -> ids.NodeID | Denial:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.bearer or NODE

    async def register(self, body: RegistrationBody, *, remote_address: str) -> Registered | Denial:
        return self._refused() or REGISTERED

    async def heartbeat(self, node_id: ids.NodeID, body: HeartbeatBody) -> datetime | Denial:
        return self._refused() or NOW

    async def state(self, node_id: ids.NodeID) -> NodeState | Denial:
        return self._refused() or next(self.states)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Asks one operation, checks each answer against the document, and keeps what it saw."""

    operation: Operation
    service: Scripted
    url: str
    session: aiohttp.ClientSession
    seen: set[tuple[int, str]] = field(default_factory=set)

    async def ask(self, **options: Any) -> None:
        path = self.operation.path
        for name in ("node_id", "peer_id", "key", "execution_id", "session_id"):
            path = path.replace(f"{{{name}}}", str(NODE))
        if not options and self.operation.request is not None:
            options = {"json": REGISTRATION if self.operation.id == "register" else heartbeat()}
        method = self.operation.method
        async with self.session.request(method, self.url + path, **options) as response:
            instance = json.loads(await response.text())
            documented = described(self.operation, response.status)
            (content_type,) = documented["content"]
            assert response.content_type == content_type
            conforms(instance, documented["content"][content_type]["schema"])
            for name, header in documented.get("headers", {}).items():
                told = response.headers.get(name)
                if name == "Retry-After":
                    told = told and json.loads(told)
                if told is not None or name != "Retry-After":
                    conforms(told, header["schema"])
            self.seen.add((response.status, instance.get("code", "")))


def described(operation: Operation, status: int) -> dict[str, Any]:
    """Return what the document says of an answer, its reference followed."""
    responses = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]
    response: dict[str, Any] = responses[str(status)]
    reference = response.get("$ref", "").rpartition("/")[2]
    return DOCUMENT["components"]["responses"][reference] if reference else response


def conforms(instance: object, schema: dict[str, Any]) -> None:
    """Fail unless an instance has a schema of the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    Draft202012Validator(whole, format_checker=FormatChecker()).validate(instance)


def documented(operation: Operation) -> set[tuple[int, str]]:
    """Return every status and code that the document gives an operation."""
    pairs = set()
    for status in DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]:
        (content,) = described(operation, int(status))["content"].values()
        narrowed = content["schema"].get("allOf", [{}])[-1]
        codes = narrowed.get("properties", {}).get("code") or {"enum": []}
        pairs |= {(int(status), code) for code in codes["enum"]}
        if not narrowed.get("required"):
            pairs.add((int(status), ""))
    return pairs


@asynccontextmanager
async def recording(operation: Operation) -> AsyncIterator[Recorder]:
    service = Scripted()
    app = node_app(service, address_budget=service, bearer_budget=service)
    async with listening(app, LOOPBACK, tls=None) as url, aiohttp.ClientSession() as session:
        yield Recorder(operation=operation, service=service, url=url, session=session)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
async def test_every_documented_answer_is_given_and_no_other(operation: Operation) -> None:
    async with recording(operation) as recorder:
        service = recorder.service
        await recorder.ask()
        if operation.id == "state":
            await recorder.ask()
        for refusal in BEARER if operation.authenticated else ():
            service.bearer = refusal
            await recorder.ask()
        service.bearer = None
        for failure in (RuntimeError("a fault"), TimeoutError()):
            service.answer = failure
            await recorder.ask()
        service.answer = None
        if operation.served:
            for refusal in operation.refusals:
                service.answer = refusal
                if refusal.code not in {"", "rate_limited"}:
                    await recorder.ask()
            service.answer = None
        if operation.request is not None:
            await recorder.ask(data=b"{", headers=JSON)
            await recorder.ask(data=b" " * 20_000, headers=JSON)
            await recorder.ask(data=b"{}", headers={"Content-Type": "text/plain"})
        service.wait_s = 3
        await recorder.ask()

    assert recorder.seen == documented(operation)


def test_a_registration_has_the_contracts_codes_and_no_other() -> None:
    (register,) = (operation for operation in OPERATIONS if operation.id == "register")

    assert documented(register) == {
        (201, ""),
        (400, ""), (400, "public_key_invalid"),
        (403, ""), (403, "kind_mismatch"), (403, "project_mismatch"), (403, "token_consumed"),
        (403, "token_expired"), (403, "token_revoked"), (403, "nonce_collision"),
        (404, "resource_not_found"),
        (409, ""), (413, ""), (415, ""),
        (422, "invariant_violation"), (422, "bootstrap_token_invalid"),
        (429, ""),
        (500, ""),
        (503, ""), (503, "pool_exhausted"), (503, "subrange_exhausted"),
        (503, "allocator_contention"),
    }  # fmt: skip


def test_the_document_and_the_router_have_the_same_operations() -> None:
    routes: set[tuple[str, str]] = set()
    app: web.Application = node_app(Scripted(), address_budget=Scripted(), bearer_budget=Scripted())
    for route in app.router.routes():
        assert route.resource is not None
        routes.add((route.resource.canonical, route.method))

    paths = DOCUMENT["paths"]
    assert routes == {(path, method.upper()) for path in paths for method in paths[path]}
    assert len(routes) == len(OPERATIONS)


def test_operations_have_names_and_their_paths_parameters() -> None:
    operations = [
        (path, operation)
        for path, methods in DOCUMENT["paths"].items()
        for operation in methods.values()
    ]

    assert len({operation["operationId"] for _, operation in operations}) == len(operations)
    for path, operation in operations:
        named = [parameter["name"] for parameter in operation.get("parameters", [])]
        assert sorted(named) == sorted(part[1:-1] for part in path.split("/") if part[:1] == "{")


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _nodes(item)


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    references = [node["$ref"] for node in _nodes(DOCUMENT) if "$ref" in node]
    assert references
    for reference in references:
        found: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "body"), [("RegisterRequest", REGISTRATION), ("HeartbeatRequest", heartbeat())]
)
def test_what_a_node_sends_has_the_schema_and_needs_every_field(
    schema: str, body: dict[str, Any]
) -> None:
    described_body = DOCUMENT["components"]["schemas"][schema]
    conforms(body, described_body)

    validator = Draft202012Validator({**described_body, "components": DOCUMENT["components"]})
    for name in body:
        assert not validator.is_valid({key: body[key] for key in body if key != name})
    assert not validator.is_valid({**body, "hostname": "web-1"})


async def test_the_kept_document_is_the_generated_one(tmp_path: Path) -> None:
    written = tmp_path / "openapi.json"

    asked = await asyncio.to_thread(CliRunner().invoke, openapi, ["--out", str(written)])

    assert asked.exit_code == 0
    assert written.read_text(encoding="utf-8") == text() == KEPT.read_text(encoding="utf-8")
    assert CliRunner().invoke(openapi).output == text()
