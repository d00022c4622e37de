"""Many connections, slow ones among them, and registrations that go on."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import json
import logging
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

import pytest
from aiohttp import web

from dev.pki import Authority
from reconciler.adapters.http import connections, listener
from reconciler.adapters.http.listener import TLSFiles, listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.process_limits import make_room_for_files
from reconciler.domain.aggregate import ids
from tests.contract.worlds import World, memory_world
from tests.fakes.budget import unlimited
from tests.integration.http.conftest import LOOPBACK
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

ORDINARY: Final = 1500
SLOW: Final = 500
REGISTRATIONS: Final = 50
FILES_NEEDED: Final = 2 * (ORDINARY + SLOW) + connections.FILES_RESERVED
"""Client and server are one process here."""
IDLE_S: Final = 12.0
"""Instead of fifteen, to see the end of the slow ones; a loaded machine answers all before."""
DRIP_S: Final = 0.5
LATE_S: Final = 5.0
"""How late a loaded machine may cut one."""
DEADLINE_S: Final = 30.0
BIG: Final = ids.ProjectID(UUID("0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0b16"))

T = TypeVar("T")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _nodes(*, tls: TLSFiles | None = None) -> AsyncIterator[tuple[World, int]]:
    world = await memory_world()
    app = node_app(world.enrolment, address_budget=unlimited(), bearer_budget=unlimited())
    async with listening(app, LOOPBACK, tls=tls) as url:
        yield world, int(url.rpartition(":")[2])


async def _connect(port: int) -> Streams:
    return await asyncio.open_connection("127.0.0.1", port)


async def _ask(streams: Streams, body: dict[str, str]) -> int:
    """Send one registration; return its status."""
    reader, writer = streams
    payload = json.dumps(body).encode()
    head = (
        "POST /v1/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(payload)}\r\n\r\n"
    )
    writer.write(head.encode() + payload)
    head_lines = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head_lines.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    await reader.readexactly(length)
    return int(head_lines.split(b" ")[1])


async def _drip(streams: Streams) -> float:
    """Send one header byte by byte; return how long the listener bore it, in seconds."""
    reader, writer = streams
    started_s = time.monotonic()
    writer.write(b"POST /v1/register HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    ended = asyncio.create_task(reader.read())
    while not ended.done():
        with contextlib.suppress(ConnectionError):
            writer.write(b"x")
            await writer.drain()
        await asyncio.wait({ended}, timeout=DRIP_S)
    with contextlib.suppress(ConnectionError):
        assert ended.result() == b""
    writer.close()
    return time.monotonic() - started_s


async def _bodies(world: World) -> list[dict[str, str]]:
    await world.tenancy.ensure_domain("big", "100.65.0.0/20")
    await world.tenancy.ensure_project(BIG, "big", "big")
    bodies = []
    for number in range(REGISTRATIONS):
        key = replace(samples.resource().key, project_id=BIG, name=f"node-{number}")
        aggregate = await world.resource(f"node-{number}", project_id=BIG, key=key)
        token = await world.token(aggregate)
        bodies.append(
            {
                "project_id": str(BIG),
                "resource_handle": aggregate.xr_name,
                "bootstrap_token": token.plaintext.reveal(),
                "nonce": f"nonce-{number}",
                "public_key": base64.b64encode(token.id.bytes * 2).decode(),
            }
        )
    return bodies


async def _gathered(awaitables: list[Coroutine[Any, Any, T]]) -> list[T]:
    async with asyncio.timeout(DEADLINE_S):
        return list(await asyncio.gather(*awaitables))


async def test_two_thousand_connections_with_slow_ones_hinder_no_registration(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_room_for_files()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES_NEEDED:
        pytest.skip(f"needs {FILES_NEEDED} open files, may have {soft}")
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(listener, "IDLE_TIMEOUT_S", IDLE_S)
    async with _nodes() as (world, port):
        bodies = await _bodies(world)
        slow = await _gathered([_connect(port) for _ in range(SLOW)])
        dripping = [asyncio.create_task(_drip(streams)) for streams in slow]
        ordinary = await _gathered([_connect(port) for _ in range(ORDINARY)])
        # Each of them is served, so that all are open when the registrations come.
        assert set(await _gathered([_ask(streams, {}) for streams in ordinary])) == {422}
        statuses = await _gathered([_ask(*pair) for pair in zip(ordinary, bodies, strict=False)])
        still_dripping = sum(not task.done() for task in dripping)
        async with asyncio.timeout(DEADLINE_S):
            borne = await asyncio.gather(*dripping)
        for _, writer in ordinary:
            writer.close()

    assert statuses == [201] * REGISTRATIONS
    # Whoever registers waited for none of the slow ones.
    assert still_dripping == SLOW
    assert max(borne) < IDLE_S + LATE_S
    assert caplog.text == ""


async def test_a_connection_above_the_cap_is_closed_and_a_freed_place_is_given_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 3)
    async with _nodes() as (_, port):
        held = await _gathered([_connect(port) for _ in range(3)])
        assert await _gathered([_ask(streams, {}) for streams in held]) == [422] * 3

        reader, writer = await _connect(port)
        async with asyncio.timeout(DEADLINE_S):
            turned_away = await reader.read()
        writer.close()

        assert turned_away == b""
        assert "connections_refused count=1 max=3" in caplog.text
        held.pop()[1].close()
        assert await _served_in_time(port) == 422
        for _, writer in held:
            writer.close()


async def _served_in_time(port: int) -> int:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        streams = await _connect(port)
        try:
            return await _ask(streams, {})
        except (ConnectionError, asyncio.IncompleteReadError):
            assert time.monotonic() < deadline
        finally:
            streams[1].close()


async def test_who_never_shakes_hands_is_counted_and_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT_S", 1.0)
    Authority.create("tests").server_folder(tmp_path, "node-listener")
    files = TLSFiles(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    async with _nodes(tls=files) as (_, port):
        silent = await _gathered([_connect(port) for _ in range(3)])

        with pytest.raises(OSError):  # noqa: PT011 - a reset, or an end in mid-handshake
            await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        async with asyncio.timeout(DEADLINE_S):
            told = [await reader.read() for reader, _ in silent]

        streams = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        assert await _ask(streams, {}) == 422
        assert told == [b""] * 3
        for _, writer in [*silent, streams]:
            writer.close()


async def test_want_of_files_is_waited_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept = socket.socket.accept
    faults = [OSError(errno.EMFILE, "Too many open files")] * 3

    def without_files(listener: socket.socket) -> tuple[socket.socket, Any]:
        if faults:
            raise faults.pop()
        return accept(listener)

    async with _nodes() as (_, port):
        monkeypatch.setattr(socket.socket, "accept", without_files)
        streams = await _connect(port)
        async with asyncio.timeout(DEADLINE_S):
            assert await _ask(streams, {}) == 422
        streams[1].close()

    assert caplog.text.count("accept_failed errno=EMFILE") == 3


async def test_open_connections_end_with_the_listener() -> None:
    async with _nodes() as (_, port):
        streams = await _connect(port)
        assert await _ask(streams, {}) == 422

    async with asyncio.timeout(DEADLINE_S):
        assert await streams[0].read() == b""
    streams[1].close()
    with pytest.raises(ConnectionError):
        await _connect(port)


@pytest.mark.parametrize(
    ("soft", "most"),
    [(1024, 384), (8192, 3968), (65_536, 4096), (100, 1), (resource.RLIM_INFINITY, 4096)],
)
def test_the_cap_leaves_files_to_the_rest(
    monkeypatch: pytest.MonkeyPatch, soft: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, resource.RLIM_INFINITY))

    assert connections.connections_max() == most


async def test_a_name_with_several_addresses_has_one_port() -> None:
    app = web.Application()
    runner = web.AppRunner(app)
    await runner.setup()
    assert runner.server is not None
    async with connections.accepting(runner.server, "localhost", 0, context=None) as port:
        _, writer = await asyncio.open_connection("localhost", port)
        writer.close()
    await runner.cleanup()
