"""The operators' listener over a real socket."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from reconciler.adapters.http.listener import listening
from reconciler.adapters.http.operators import operator_app
from reconciler.adapters.http.operators.operator_api import OperatorAPI
from reconciler.adapters.http.operators.operator_app import Probe
from reconciler.adapters.http.operators.operator_auth import Gate
from tests.fakes.reviewer import InMemoryReviewer
from tests.integration.http.conftest import LOOPBACK, unasked_store

pytestmark = pytest.mark.integration


async def _passes() -> None:
    return


async def _fails() -> None:
    message = "postgresql://user:hunter2@host refused us"
    raise ConnectionError(message)


async def _hangs() -> None:
    await asyncio.Event().wait()


async def _ask(probes: dict[str, Probe], path: str) -> tuple[int, str]:
    api = OperatorAPI(Gate(InMemoryReviewer()), unasked_store())
    app = operator_app.operator_app(probes, api)
    async with (
        listening(app, LOOPBACK, tls=None) as url,
        aiohttp.ClientSession() as session,
        session.get(url + path) as response,
    ):
        return response.status, await response.text()


async def test_it_is_alive_whatever_its_dependencies_say() -> None:
    assert await _ask({"postgres": _fails}, "/healthz") == (200, "ok\n")


async def test_it_is_ready_when_every_probe_passes() -> None:
    status, text = await _ask({"postgres": _passes, "cluster": _passes}, "/readyz")

    assert status == 200
    assert text == "[+]cluster ok\n[+]postgres ok\n"


async def test_a_probe_that_fails_is_named_without_its_text() -> None:
    status, text = await _ask({"postgres": _fails, "cluster": _passes}, "/readyz")

    assert status == 503
    assert text == "[+]cluster ok\n[-]postgres failed\n"


async def test_a_probe_that_hangs_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_app, "PROBE_TIMEOUT_S", 0.1)

    assert await _ask({"postgres": _hangs}, "/readyz") == (503, "[-]postgres failed\n")


@pytest.mark.parametrize("path", ["/", "/v1/register", "/v1/nodes/x/state", "/metrics"])
async def test_nothing_of_the_nodes_is_served(path: str) -> None:
    status, _ = await _ask({}, path)

    assert status == 404


async def test_who_asks_for_itself_leaves_out_what_is_others_to_mend() -> None:
    probes: dict[str, Probe] = {"postgres": _passes, "provisioning-broker-reconcile": _fails}

    assert (await _ask(probes, "/readyz"))[0] == 503
    excluding = await _ask(probes, "/readyz?exclude=provisioning-broker-reconcile&exclude=other")
    assert excluding == (200, "[+]postgres ok\n")
