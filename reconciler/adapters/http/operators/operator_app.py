"""The listener for operators: is it alive, is it ready, what it counts, and the read API.

Health and metrics, which need no credential and name no object, and what is put together.
Nothing secret is served here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from reconciler.adapters.http.decoding import BODY_MAX_BYTES
from reconciler.adapters.http.middleware import answer
from reconciler.adapters.http.operators.operator_api import OperatorAPI

PROBE_TIMEOUT_S: Final = 3.0
"""Longest probe: below the ten seconds that a kubelet usually waits."""

Probe = Callable[[], Awaitable[None]]
"""Asks one dependency whether it answers; raises when it does not."""

Metrics = Callable[[], bytes]
"""Returns what there is to show, in Prometheus' text format."""

_log = logging.getLogger(__name__)


class NotReadyError(Exception):
    """Says in words of ours, which may be logged, what is not as it should be."""


def operator_app(
    probes: Mapping[str, Probe], api: OperatorAPI, *, metrics: Metrics | None = None
) -> web.Application:
    """Build the operator listener's application.

    Args:
        probes: Name of each dependency and how to ask it; all are asked at once.
        api: What needs a credential.
        metrics: The text of `/metrics`; None: it is not served.
    """
    app = web.Application(middlewares=[answer], client_max_size=BODY_MAX_BYTES)

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        # As the API server's own: what asks for itself alone leaves out what is others' to fix.
        names = sorted(probes.keys() - set(request.query.getall("exclude", ())))
        results = await asyncio.gather(*(_passes(name, probes[name]) for name in names))
        lines = [
            f"[{'+' if passed else '-'}]{name} {'ok' if passed else 'failed'}\n"
            for name, passed in zip(names, results, strict=True)
        ]
        return web.Response(status=200 if all(results) else 503, text="".join(lines) or "ok\n")

    async def shown(_: web.Request) -> web.Response:
        headers = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        return web.Response(body=b"" if metrics is None else metrics(), headers=headers)

    if metrics is not None:
        app.router.add_get("/metrics", shown)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    api.add_to(app.router)
    return app


async def _passes(name: str, probe: Probe) -> bool:
    """Ask one dependency; whatever it raises means no, and its text goes to the log alone."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            await probe()
    except NotReadyError as error:
        _log.warning("probe_failed probe=%s error=%s", name, error)
        return False
    except Exception as error:  # noqa: BLE001 - a probe may fail in any way its driver knows
        _log.warning("probe_failed probe=%s error=%s", name, type(error).__name__)
        return False
    return True
