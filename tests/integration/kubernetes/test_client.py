"""The client over API servers that answer late, wrongly or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException

from dev import kubeconfig
from dev.process import free_port
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import (
    WATCH_LINE_MAX_BYTES,
    KubernetesClient,
    KubernetesError,
    UnreachableError,
)
from tests.integration.kubernetes.conftest import client_of, until
from tests.integration.kubernetes.stand_in import PATH, StandIn

pytestmark = pytest.mark.integration

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[KubernetesClient]:
    """Yield a client of a server that answers everything in one way."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server, client_of(str(server.make_url("")).rstrip("/")) as client:
        yield client


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, "404 page not found\n"),
        (503, "<html>Service Unavailable</html>"),
        (429, ""),
        (500, '"a string"'),
    ],
)
async def test_a_refusal_that_is_no_status_object_is_a_refusal(status: int, body: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    async with answering(answer) as client:
        with pytest.raises(KubernetesError) as refused:
            await client.request("GET", "/apis/nowhere")

    assert refused.value.status == status


async def test_what_a_mux_does_not_know_is_absent() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found\n")

    async with answering(answer) as client:
        assert await client.get("/apis/nowhere") is None


async def test_a_refusal_names_its_causes() -> None:
    body = {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": "namespace shop is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]},
    }

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body, status=403)

    async with answering(answer) as client:
        with pytest.raises(KubernetesError, match="being terminated") as refused:
            await client.request("POST", "/api/v1/namespaces/shop/events", body={})

    assert refused.value.reason == "Forbidden"
    assert refused.value.causes == {"NamespaceTerminating"}


@pytest.mark.parametrize("text", ["{", "[1]"])
async def test_a_good_answer_that_is_no_object_is_unreadable(text: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text)

    async with answering(answer) as client:
        with pytest.raises(ValueError, match=r"."):
            await client.request("GET", "/version")


async def test_an_answer_that_does_not_come_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.adapters.kubernetes.transport.client.REQUEST_TIMEOUT_S", 0.1)
    never = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        await never.wait()
        return web.json_response({})

    async with answering(answer) as client:
        with pytest.raises(TimeoutError):
            await client.request("GET", "/version")
        never.set()


async def test_an_answer_that_stops_half_way_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.adapters.kubernetes.transport.client.REQUEST_TIMEOUT_S", 0.1)
    never = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"kind":')
        await never.wait()
        return response

    async with answering(answer) as client:
        with pytest.raises(TimeoutError):
            await client.request("GET", "/version")
        never.set()


@pytest.mark.parametrize("half_way", [False, True])
async def test_a_dropped_connection_is_an_os_error(half_way: bool) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if half_way:
            await response.prepare(request)
            await response.write(b'{"kind":')
        assert request.transport is not None
        request.transport.abort()
        return response

    async with answering(answer) as client:
        with pytest.raises(UnreachableError, match="cannot get /version") as lost:
            await client.request("GET", "/version")

    assert isinstance(lost.value, OSError)


async def test_a_server_that_is_not_there_is_an_os_error() -> None:
    async with client_of(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(UnreachableError):
            await client.request("GET", PATH)


async def test_connections_are_used_again(server: StandIn, client: KubernetesClient) -> None:
    server.page_faults = iter([None, 404] * 10)

    for _ in range(20):
        await client.get(PATH)

    assert len(server.requests) == 20
    assert len({request.connection for request in server.requests}) == 1


async def test_a_watch_that_is_left_closes_its_connection(
    server: StandIn, client: KubernetesClient
) -> None:
    server.put("a")
    async with aclosing(client.watch(PATH, resource_version="100")) as events:
        async for event in events:
            assert event["object"]["metadata"]["name"] == "a"
            break

    await until(lambda: server.streams == 0)


async def test_a_cancelled_watch_closes_its_connection(
    server: StandIn, client: KubernetesClient
) -> None:
    async def follow() -> None:
        async for _ in client.watch(PATH, resource_version="100"):
            pass

    task = asyncio.create_task(follow())
    await until(lambda: server.streams == 1)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await until(lambda: server.streams == 0)


@pytest.mark.parametrize("status", [410, 429, 500])
async def test_a_refused_watch_leaves_no_connection_behind(
    server: StandIn, client: KubernetesClient, status: int
) -> None:
    server.break_watches(status)

    with pytest.raises(KubernetesError) as refused:
        await anext(client.watch(PATH, resource_version="100"))

    assert refused.value.status == status


async def test_an_event_may_be_larger_than_any_buffer() -> None:
    item = {"metadata": {"name": "a", "padding": "x" * (WATCH_LINE_MAX_BYTES - 1024)}}

    async with answering(_one_line({"type": "ADDED", "object": item})) as client:
        events = [event async for event in client.watch(PATH, resource_version="1")]

    assert events == [{"type": "ADDED", "object": item}]


async def test_a_line_without_end_is_refused() -> None:
    item = {"metadata": {"name": "a", "padding": "x" * (2 * WATCH_LINE_MAX_BYTES)}}

    async with answering(_one_line({"type": "ADDED", "object": item})) as client:
        with pytest.raises(KubernetesError, match="line too long"):
            await anext(client.watch(PATH, resource_version="1"))


async def test_a_kubeconfig_s_token_is_sent(server: StandIn, url: str, tmp_path: Path) -> None:
    client = await open_client(_kubeconfig(tmp_path, url, {"token": "sample-token"}))

    await client.request("GET", PATH)
    async with aclosing(client.watch(PATH, resource_version="100")) as events:
        server.put("a")
        await anext(events)
    await client.close()

    assert [request.authorization for request in server.requests] == ["Bearer sample-token"] * 2


async def test_what_a_netrc_says_by_default_is_sent_to_nobody(
    server: StandIn, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login sample password sample")
    monkeypatch.setenv("NETRC", str(netrc))
    client = await open_client(_kubeconfig(tmp_path, url, {}))

    await client.request("GET", PATH)
    await client.close()

    assert [request.authorization for request in server.requests] == [None]


async def test_the_environments_proxy_is_asked_unless_the_server_is_excepted(
    server: StandIn, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig_ = _kubeconfig(tmp_path, "http://127.0.0.1:1", {})
    monkeypatch.setenv("http_proxy", url)
    monkeypatch.setenv("no_proxy", "other.example.invalid")
    client = await open_client(kubeconfig_)
    await client.request("GET", PATH)
    await client.close()

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    client = await open_client(kubeconfig_)
    with pytest.raises(UnreachableError):
        await client.request("GET", PATH)
    await client.close()

    assert len(server.requests) == 1


async def test_a_token_file_is_read_again(
    server: StandIn, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.adapters.kubernetes.cluster.TOKEN_REREAD_S", 0.0)
    token = tmp_path / "token"
    token.write_text("first")
    client = await open_client(_kubeconfig(tmp_path, url, {"tokenFile": str(token)}))
    await client.request("GET", PATH)

    token.write_text("second")
    await client.request("GET", PATH)
    await client.close()

    sent = [request.authorization for request in server.requests]
    assert sent == ["Bearer first", "Bearer second"]


async def test_a_token_that_cannot_be_read_again_is_an_os_error(server: StandIn, url: str) -> None:
    configuration = Configuration(host=url, api_key={"BearerToken": "bearer first"})
    client = KubernetesClient(ApiClient(configuration))
    await client.request("GET", PATH)

    configuration.refresh_api_key_hook = _unreadable  # type: ignore[assignment]  # typed as None upstream
    with pytest.raises(UnreachableError):
        await client.request("GET", PATH)
    await client.close()

    assert len(server.requests) == 1


def _unreadable(_: Configuration) -> None:
    message = "Token file exists but empty."
    raise ConfigException(message)


def _one_line(event: dict[str, Any]) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(json.dumps(event).encode() + b"\n")
        return response

    return answer


def _kubeconfig(folder: Path, url: str, user: dict[str, str]) -> Path:
    document = kubeconfig.document({"server": url}, user)
    return kubeconfig.write(folder / "kubeconfig", document)
