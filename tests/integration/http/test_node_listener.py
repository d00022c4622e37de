"""The node listener's edges over real sockets: bodies, limits, bearers, TLS, slow clients."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from uuid_utils.compat import uuid7

from dev.pki import Authority
from reconciler.adapters.http import middleware
from reconciler.adapters.http.listener import Address, ListenerError, TLSFiles, listening
from reconciler.adapters.http.node_app import STATE_BLOCKS, node_app
from reconciler.adapters.http.rate_limit import TokenBuckets
from tests.contract.worlds import Unlimited, memory_world
from tests.integration.http.conftest import LOOPBACK, Answer, Nodes, bearer, heartbeat, wire
from tests.integration.http.test_register import assert_problem

pytestmark = pytest.mark.integration

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    """The listener over fakes: what is tested here ends before any row."""
    world = await memory_world()
    app = node_app(world.enrolment, address_budget=Unlimited())
    async with listening(app, LOOPBACK, tls=None) as url, aiohttp.ClientSession() as session:
        yield Nodes(world=world, url=url, session=session)


@pytest.fixture
async def registered(nodes: Nodes) -> Answer:
    resource = await nodes.world.resource()
    return await nodes.register(wire(resource, await nodes.world.token(resource)))


class TestBodies:
    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b'"text"',
            b'{"nonce": "a", "nonce": "b"}',
            b'{"nonce": NaN}',
            b'{"nonce": "\xff"}',
            b'{"nonce": "\\ud800"}',
            b'{"nonce": {"deep": 1}}',
            b"[" * 8000,
            b'{"nonce": ' * 1000,
        ],
        ids=lambda raw: repr(raw[:20]),
    )
    async def test_what_is_no_object_of_the_contract_is_400(self, nodes: Nodes, raw: bytes) -> None:
        answer = await nodes.ask("POST", "/v1/register", data=raw, headers=JSON)

        assert_problem(answer, 400, None)

    async def test_more_than_16_kib_is_413(self, nodes: Nodes) -> None:
        body = json.dumps({"nonce": "x" * 20_000}).encode()

        assert_problem(await nodes.ask("POST", "/v1/register", data=body, headers=JSON), 413, None)

    async def test_more_than_16_kib_in_chunks_is_413(self, nodes: Nodes) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b" " * 1024

        answer = await nodes.ask("POST", "/v1/register", data=chunks(), headers=JSON)

        assert_problem(answer, 413, None)

    @pytest.mark.parametrize(
        "headers",
        [
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/json; charset=latin-1"},
            {**JSON, "Content-Encoding": "gzip"},
            {**JSON, "Content-Encoding": "br"},
        ],
        ids=str,
    )
    async def test_another_type_or_encoding_is_415(
        self, nodes: Nodes, headers: dict[str, str]
    ) -> None:
        answer = await nodes.ask("POST", "/v1/register", data=b"{}", headers=headers)

        assert_problem(answer, 415, None)


async def test_a_request_that_is_no_http_is_logged_without_its_text(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(nodes.url.split(":")[-1]))
    writer.write(b"POST /v1/register HTTP/1.1\r\nAuthorization: Bearer nsk_x\x00_secret\r\n\r\n")

    async with asyncio.timeout(10):
        answer = await reader.read()

    writer.close()
    assert b" 400 Bad Request" in answer
    assert "request_unreadable" in caplog.text
    assert "secret" not in caplog.text


class TestRoutes:
    @pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/v1/projects", "/v1/nodes"])
    async def test_nothing_else_is_served(self, nodes: Nodes, path: str) -> None:
        assert_problem(await nodes.ask("GET", path), 404, None)

    async def test_another_method_is_405(self, nodes: Nodes) -> None:
        answer = await nodes.ask("GET", "/v1/register")

        assert_problem(answer, 405, None)
        assert answer.headers["Allow"] == "POST"

    @pytest.mark.parametrize(
        ("method", "rest"),
        [("GET", "events"), ("PUT", "endpoint"), ("POST", "metrics"), ("GET", "peers/x/psk")],
    )
    async def test_what_is_not_served_yet_is_501(
        self, nodes: Nodes, registered: Answer, method: str, rest: str
    ) -> None:
        headers = {"Authorization": f"Bearer {bearer(registered)}"}

        answer = await nodes.ask(
            method, f"/v1/nodes/{registered.json['node_id']}/{rest}", headers=headers
        )

        code = "signed_event_bus_not_provisioned" if rest == "events" else None
        assert_problem(answer, 501, code)

    async def test_state_holds_every_block(self, nodes: Nodes, registered: Answer) -> None:
        headers = {"Authorization": f"Bearer {bearer(registered)}"}

        answer = await nodes.ask(
            "GET", f"/v1/nodes/{registered.json['node_id']}/state", headers=headers
        )

        assert answer.status == 200
        assert set(answer.json) == set(STATE_BLOCKS)


class TestHeartbeat:
    async def test_a_live_node_is_answered(self, nodes: Nodes, registered: Answer) -> None:
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
    async def test_no_bearer_is_401(
        self, nodes: Nodes, registered: Answer, header: str | None
    ) -> None:
        headers = {} if header is None else {"Authorization": header}

        answer = await nodes.heartbeat(registered, headers=headers)

        assert_problem(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("known_node", [True, False])
    async def test_a_key_that_is_not_the_nodes_is_401(
        self, nodes: Nodes, registered: Answer, *, known_node: bool
    ) -> None:
        node_id = UUID(registered.json["node_id"]) if known_node else uuid7()
        forged = base64.urlsafe_b64encode(node_id.bytes + bytes(32)).decode()

        answer = await nodes.heartbeat(
            registered, headers={"Authorization": f"Bearer nsk_plexd_{forged}"}
        )

        assert_problem(answer, 401, "nsk_invalid")

    async def test_the_raw_key_is_no_bearer(self, nodes: Nodes, registered: Answer) -> None:
        headers = {"Authorization": f"Bearer {registered.json['nsk']}"}

        assert_problem(await nodes.heartbeat(registered, headers=headers), 401, "unauthorized")

    @pytest.mark.parametrize("node_id", [str(uuid7()), "me"])
    async def test_another_nodes_path_is_403(
        self, nodes: Nodes, registered: Answer, node_id: str
    ) -> None:
        answer = await nodes.heartbeat(registered, node_id=node_id)

        assert_problem(answer, 403, "node_id_mismatch")

    async def test_a_deregistered_node_is_403_and_no_peer(self, nodes: Nodes) -> None:
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
            ({"binary_version": ""}, "binary_version_empty"),
            ({"binary_version": "v\u0000"}, "malformed_heartbeat_request"),
            ({"binary_version": "v" * 300}, "malformed_heartbeat_request"),
            ({"client_now": "yesterday"}, "malformed_heartbeat_request"),
            ({"client_now": "2026-11-21T12:00:00"}, "malformed_heartbeat_request"),
            ({"client_now": 12}, "malformed_heartbeat_request"),
            ({"nat_summary": None}, "malformed_heartbeat_request"),
            ({"uptime": 3}, "malformed_heartbeat_request"),
            (
                {"client_now": (datetime.now(UTC) - timedelta(hours=1)).isoformat()},
                "clock_skew",
            ),
            (
                {"client_now": (datetime.now(UTC) + timedelta(hours=1)).isoformat()},
                "clock_skew",
            ),
        ],
        ids=lambda value: str(value)[:40],
    )
    async def test_a_heartbeat_out_of_order_is_400(
        self, nodes: Nodes, registered: Answer, changes: dict[str, Any], code: str
    ) -> None:
        answer = await nodes.heartbeat(registered, changes=changes)

        assert_problem(answer, 400, code)

    async def test_the_nanoseconds_of_go_are_taken(self, nodes: Nodes, registered: Answer) -> None:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.123456789Z"

        assert (await nodes.heartbeat(registered, changes={"client_now": now})).status == 200

    async def test_a_missing_field_is_400(self, nodes: Nodes, registered: Answer) -> None:
        body = heartbeat()
        del body["nat_summary"]

        answer = await nodes.ask(
            "POST",
            f"/v1/nodes/{registered.json['node_id']}/heartbeat",
            json=body,
            headers={"Authorization": f"Bearer {bearer(registered)}"},
        )

        assert_problem(answer, 400, "malformed_heartbeat_request")
        assert "nat_summary" in answer.json["detail"]


@asynccontextmanager
async def _listening(**options: Any) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    world = await memory_world()
    budget = options.pop("budget", TokenBuckets(per_second=1000, monotonic=lambda: 0.0))
    app = node_app(world.enrolment, address_budget=budget)
    address, tls = options.pop("address", LOOPBACK), options.pop("tls", None)
    async with listening(app, address, tls=tls) as url, aiohttp.ClientSession() as session:
        yield url, session


class TestLimits:
    async def test_an_address_that_asks_too_often_is_429(self) -> None:
        budget = TokenBuckets(per_second=2, monotonic=lambda: 0.0)
        async with _listening(budget=budget) as (url, session):
            statuses = []
            for _ in range(4):
                async with session.post(f"{url}/v1/register", json={}) as response:
                    statuses.append(response.status)
                    wait = response.headers.get("Retry-After", "")

        assert statuses == [422, 422, 429, 429]
        assert wait == "1"

    async def test_a_body_that_never_comes_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(middleware, "REQUEST_TIMEOUT_S", 0.2)
        async with _listening() as (url, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[-1]))
            writer.write(
                b"POST /v1/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            async with asyncio.timeout(10):
                status = await reader.readline()
            writer.close()

        assert status.startswith(b"HTTP/1.1 503")

    async def test_headers_that_never_end_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("reconciler.adapters.http.listener.IDLE_TIMEOUT_S", 0.2)
        async with _listening() as (url, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[-1]))
            writer.write(b"POST /v1/register HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            async with asyncio.timeout(10):
                rest = await reader.read()
            writer.close()

        assert rest == b""


def _certificate(folder: Path) -> tuple[Path, TLSFiles]:
    Authority.create("tests").server_folder(folder, "node-listener")
    return folder / "ca.crt", TLSFiles(certificate=folder / "tls.crt", key=folder / "tls.key")


class TestTLS:
    async def test_a_listener_with_a_certificate_speaks_tls(self, tmp_path: Path) -> None:
        authority, tls = _certificate(tmp_path)
        trust = ssl.create_default_context(cafile=str(authority))
        async with _listening(tls=tls) as (url, session):
            assert url.startswith("https://")
            async with session.post(f"{url}/v1/register", json={}, ssl=trust) as response:
                assert response.status == 422

    @pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])  # noqa: S104
    async def test_off_loopback_there_is_none_without(self, host: str) -> None:
        with pytest.raises(ListenerError, match="TLS is required off loopback"):
            async with _listening(address=Address(host=host, port=0)):
                pass

    async def test_files_that_are_no_pair_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.pem").write_text("nonsense")
        files = TLSFiles(certificate=tmp_path / "a.pem", key=tmp_path / "a.pem")

        with pytest.raises(ListenerError, match="PEM pair"):
            async with _listening(tls=files):
                pass

    async def test_a_taken_port_is_refused(self) -> None:
        async with _listening() as (url, _):
            taken = Address(host="127.0.0.1", port=int(url.split(":")[-1]))
            with pytest.raises(ListenerError, match="cannot listen on"):
                async with _listening(address=taken):
                    pass
