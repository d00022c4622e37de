"""The least a Python registration can do: consume a row, insert a node and an event.

A bare aiohttp handler over asyncpg, one transaction a request, on tables of its own.
"""

from __future__ import annotations

import hashlib
import json
import secrets

import asyncpg
from aiohttp import web
from uuid_utils.compat import uuid7

TABLES = """
CREATE TABLE bare_tokens (token_hash bytea PRIMARY KEY, consumed_at timestamptz);
CREATE TABLE bare_nodes (id uuid PRIMARY KEY, token_hash bytea NOT NULL, public_key text NOT NULL);
CREATE TABLE bare_events (id uuid PRIMARY KEY, payload text NOT NULL);
"""

_CONSUME = """
UPDATE bare_tokens SET consumed_at = now() WHERE token_hash = $1 AND consumed_at IS NULL
RETURNING true
"""


def app(pool: asyncpg.Pool) -> web.Application:
    """Build the application."""

    async def register(request: web.Request) -> web.Response:
        body = await request.json()
        digest = hashlib.sha256(body["bootstrap_token"].encode()).digest()
        node_id = uuid7()
        async with pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_CONSUME, digest):
                return web.json_response({"code": "token_consumed"}, status=403)
            await connection.execute(
                "INSERT INTO bare_nodes VALUES ($1, $2, $3)", node_id, digest, body["public_key"]
            )
            await connection.execute(
                "INSERT INTO bare_events VALUES ($1, $2)",
                uuid7(),
                json.dumps({"NodeID": str(node_id)}),
            )
        reply = {"node_id": str(node_id), "nsk": secrets.token_hex(32)}
        return web.json_response(reply, status=201)

    application = web.Application()
    application.router.add_post("/v1/register", register)
    return application
