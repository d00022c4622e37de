"""No answer says which program, in which version, gave it: neither ours nor the driver's own."""

from __future__ import annotations

import asyncio

import pytest

from reconciler.adapters.http.listener import listening
from reconciler.adapters.http.operators.operator_api import OperatorAPI
from reconciler.adapters.http.operators.operator_app import operator_app
from reconciler.adapters.http.operators.operator_auth import Gate
from tests.fakes.reviewer import InMemoryReviewer
from tests.integration.http.both import fakes as nodes
from tests.integration.http.conftest import LOOPBACK, Nodes, unasked_store

pytestmark = pytest.mark.integration
__all__ = ["nodes"]

TRIES = [
    (b"GET /v1/register HTTP/1.1\r\nHost: x\r\n", b"405"),
    (b"GET /nothing HTTP/1.1\r\nHost: x\r\n", b"404"),
    (b"POST /v1/register HTTP/1.1\r\nHost: x\r\nExpect: more\r\n", b"417"),
    (b"GET /v1/register HTTP/1.1\r\nHost: \x00\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n", b"400"),
    (b"nonsense\r\n", b"400"),
]


async def _headers(url: str, request: bytes) -> tuple[bytes, set[bytes]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[-1]))
    writer.write(request + b"Connection: close\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    first, *lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return first.split(b" ")[1], {line.partition(b":")[0].lower() for line in lines}


@pytest.mark.parametrize(("request_", "status"), TRIES, ids=lambda tried: repr(tried[:20]))
async def test_a_nodes_answer_names_no_program(
    nodes: Nodes, request_: bytes, status: bytes
) -> None:
    answered, headers = await _headers(nodes.url, request_)

    assert answered == status
    assert b"content-type" in headers
    assert b"server" not in headers


@pytest.mark.parametrize(
    ("request_", "status"),
    [(b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"200"), *TRIES[1:2], *TRIES[3:]],
    ids=lambda tried: repr(tried[:20]),
)
async def test_an_operators_answer_names_no_program(request_: bytes, status: bytes) -> None:
    app = operator_app({}, OperatorAPI(Gate(InMemoryReviewer()), unasked_store()))
    async with listening(app, LOOPBACK, tls=None) as url:
        answered, headers = await _headers(url, request_)

    assert answered == status
    assert b"content-type" in headers
    assert b"server" not in headers
