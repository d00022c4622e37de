"""The node listener on a real socket, over a real database."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg
import pytest

from reconciler.adapters.http.listener import Address, listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.postgres.registration.operator_store import PostgresOperatorStore
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World, postgres_world
from tests.fakes.budget import unlimited
from tests.fakes.databases import migrated_database

LOOPBACK = Address(host="127.0.0.1", port=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str
    json: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """A client of the listener, and the world behind it."""

    world: World
    url: str
    session: aiohttp.ClientSession

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        async with self.session.request(method, self.url + path, **options) as response:
            text = await response.text()
            return Answer(
                status=response.status,
                headers=dict(response.headers),
                text=text,
                json=await response.json(content_type=None) if text else None,
            )

    async def register(self, body: dict[str, Any]) -> Answer:
        return await self.ask("POST", "/v1/register", json=body)

    async def heartbeat(self, registered: Answer, **options: Any) -> Answer:
        node_id = registered.json["node_id"]
        body = {**heartbeat(), **options.pop("changes", {})}
        headers = options.pop("headers", {"Authorization": f"Bearer {bearer(registered)}"})
        path = f"/v1/nodes/{options.pop('node_id', node_id)}/heartbeat"
        return await self.ask("POST", path, json=body, headers=headers)


def wire(resource: ProvisionedResource, token: IssuedToken, **changes: Any) -> dict[str, Any]:
    """Build a registration as a node sends it; None leaves a field out."""
    body = {
        "project_id": str(resource.project_id),
        "resource_handle": resource.xr_name,
        "bootstrap_token": token.plaintext.reveal(),
        "nonce": "0b54c1b4-91f0-4b50-9d13-0e7a2c9a4d7f",
        "public_key": base64.b64encode(token.id.bytes * 2).decode(),
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


def heartbeat() -> dict[str, Any]:
    """Build a heartbeat as a node sends it."""
    return {
        "client_now": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "binary_checksum": base64.b64encode(bytes(32)).decode(),
        "binary_version": "v0.8.0",
        "nat_summary": {},
    }


def bearer(registered: Answer) -> str:
    """Build a node's bearer from its registration."""
    node_id = UUID(registered.json["node_id"]).bytes
    nsk = base64.b64decode(registered.json["nsk"])
    return "nsk_plexd_" + base64.urlsafe_b64encode(node_id + nsk).decode()


def unasked_store() -> PostgresOperatorStore:
    """Return an operators' store whose pool was never opened: whoever asks it fails."""
    return PostgresOperatorStore(asyncpg.create_pool("postgresql://127.0.0.1:1/nobody"))


@pytest.fixture
def dsn() -> Any:
    with migrated_database() as dsn:
        yield dsn


@pytest.fixture
async def nodes(dsn: str) -> AsyncIterator[Nodes]:
    async with postgres_world(dsn) as world:
        app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
        async with (
            listening(app, LOOPBACK, tls=None) as url,
            aiohttp.ClientSession() as session,
        ):
            yield Nodes(world=world, url=url, session=session)


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await asyncpg.create_pool(dsn, min_size=1, max_size=2)
    yield pool
    await pool.close()
