"""The node listener's edges over real sockets: bodies, limits, TLS, slow clients."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from dev.pki import Authority
from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.http import middleware
from reconciler.adapters.http.listener import Address, ListenerError, TLSFiles, listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.http.rate_limit import TokenBuckets
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.app.registration.registration import RegistrationPorts, RegistrationService
from reconciler.domain.aggregate import ids
from reconciler.ports.registration import NodeCredential, StoreUnavailableError
from tests.contract.worlds import memory_world, unknown_token
from tests.fakes.budget import unlimited
from tests.fakes.enrolment import InMemoryEnrolmentStore
from tests.integration.http.both import fakes as nodes
from tests.integration.http.conftest import LOOPBACK, Nodes, wire
from tests.integration.http.test_register import assert_problem
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration
__all__ = ["nodes"]

JSON = {"Content-Type": "application/json"}


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

    @pytest.mark.parametrize("charset", ["", "; charset=utf-8"])
    @pytest.mark.parametrize(
        "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
    )
    async def test_another_unicode_encoding_is_415(
        self, nodes: Nodes, encoding: str, charset: str
    ) -> None:
        resource = await nodes.world.resource()
        body = json.dumps(wire(resource, await nodes.world.token(resource))).encode(encoding)
        headers = {"Content-Type": f"application/json{charset}"}

        answer = await nodes.ask("POST", "/v1/register", data=body, headers=headers)

        assert_problem(answer, 415, None)

    @pytest.mark.parametrize("charset", ["utf-16", "UTF-16LE", "utf-32"])
    async def test_another_charset_is_415_whatever_comes(self, nodes: Nodes, charset: str) -> None:
        headers = {"Content-Type": f"application/json; charset={charset}"}

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


@asynccontextmanager
async def _listening(**options: Any) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    world = await memory_world()
    budget = options.pop("budget", TokenBuckets(per_second=1000, monotonic=lambda: 0.0))
    app = node_app(world.enrolment, address_budget=budget, bearer_budget=budget)
    address, tls = options.pop("address", LOOPBACK), options.pop("tls", None)
    async with listening(app, address, tls=tls) as url, aiohttp.ClientSession() as session:
        yield url, session


class _Counting(InMemoryEnrolmentStore):
    """Counts who is looked up, and can be away."""

    asked = 0
    away = False

    async def find_credential(self, node_id: ids.NodeID) -> NodeCredential | None:
        self.asked += 1
        if self.away:
            raise StoreUnavailableError
        return await super().find_credential(node_id)


@asynccontextmanager
async def _nodes(*, per_second: float) -> AsyncIterator[tuple[Nodes, _Counting]]:
    world = await memory_world()
    assert isinstance(world.enrolment_store, InMemoryEnrolmentStore)
    store = _Counting(world.enrolment_store.store)
    world = replace(world, enrolment_store=store)
    budget = TokenBuckets(per_second=per_second, monotonic=lambda: 0.0)
    app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=budget)
    async with listening(app, LOOPBACK, tls=None) as url, aiohttp.ClientSession() as session:
        yield Nodes(world=world, url=url, session=session), store


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

    @pytest.mark.parametrize(("method", "rest"), [("GET", "state"), ("POST", "heartbeat")])
    async def test_an_address_that_guesses_bearers_is_429_and_nobody_is_asked(
        self, method: str, rest: str
    ) -> None:
        async with _nodes(per_second=3) as (nodes, store):
            guessed = base64.urlsafe_b64encode(bytes(48)).decode()
            headers = {"Authorization": f"Bearer nsk_plexd_{guessed}"}
            path = f"/v1/nodes/{UUID(int=0)}/{rest}"
            answers = [await nodes.ask(method, path, headers=headers) for _ in range(5)]

        assert [answer.status for answer in answers] == [401, 401, 401, 429, 429]
        assert_problem(answers[-1], 429, None)
        assert answers[-1].headers["Retry-After"] == "1"
        assert store.asked == 3

    async def test_nodes_behind_one_address_do_not_share_a_budget(self) -> None:
        async with _nodes(per_second=3) as (nodes, _):
            for number in range(5):
                resource = await nodes.world.resource(f"node-{number}")
                sent = wire(resource, await nodes.world.token(resource), nonce=f"{number}")
                registered = await nodes.register(sent)
                asked = [(await nodes.heartbeat(registered)).status for _ in range(3)]
                assert asked == [200] * 3

            one_more = await nodes.heartbeat(registered)

        assert_problem(one_more, 429, None)

    async def test_a_store_that_is_away_spends_nobodys_budget(self) -> None:
        async with _nodes(per_second=3) as (nodes, store):
            store.away = True
            guessed = base64.urlsafe_b64encode(bytes(48)).decode()
            headers = {"Authorization": f"Bearer nsk_plexd_{guessed}"}
            answers = [
                await nodes.ask("GET", f"/v1/nodes/{UUID(int=0)}/state", headers=headers)
                for _ in range(9)
            ]

        assert [answer.status for answer in answers] == [503] * 9

    async def test_a_project_that_asks_too_often_is_429_and_alone(self) -> None:
        world = await memory_world()
        ports = RegistrationPorts(
            store=world.enrolment_store,
            secrets=SystemSecretSource(env="prod"),
            ids=UUIDv7Source(),
            clock=SystemClock(),
            project_budget=TokenBuckets(per_second=2, monotonic=lambda: 0.0),
        )
        app = node_app(
            RegistrationService(ports, on_registered=world.registered.append),
            address_budget=unlimited(),
            bearer_budget=unlimited(),
        )
        ours = await world.resource("a")
        token = await world.token(ours)
        other = await world.tenancy.ensure_project(None, "other", "acme")
        key = replace(samples.resource().key, project_id=other, name="b")
        theirs = await world.resource("b", project_id=other, key=key)
        unknown = wire(ours, token, bootstrap_token=unknown_token().reveal())
        async with listening(app, LOOPBACK, tls=None) as url, aiohttp.ClientSession() as session:
            nodes = Nodes(world=world, url=url, session=session)
            strangers = [(await nodes.register(unknown)).status for _ in range(4)]
            answers = [await nodes.register(wire(ours, token)) for _ in range(4)]
            neighbour = await nodes.register(wire(theirs, await world.token(theirs), nonce="b"))

        assert strangers == [403] * 4
        assert [answer.status for answer in answers] == [201, 201, 429, 429]
        assert_problem(answers[-1], 429, None)
        assert answers[-1].headers["Retry-After"] == "1"
        assert neighbour.status == 201

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
        with pytest.raises(ListenerError, match="TLS files are required"):
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
