"""Gives every request an id, a deadline, a log line and problem documents.

The edge where exceptions become answers. The log line holds method, route, status, code and
duration; never a body, a header or a raw path.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from uuid_utils.compat import uuid7

from reconciler.adapters.http.problem import REQUEST_ID, ProblemError, respond
from reconciler.domain.identity.denial import Denial

REQUEST_TIMEOUT_S: Final = 20.0
"""Longest request, its body's arrival included: three tries of a registration fit."""

_METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE"})
"""What is logged by name; any other word is the client's own."""

_log = logging.getLogger(__name__)

FAILED: Final = Denial(status=500, code="", detail="the request failed; the log has its instance")
SLOW: Final = Denial(status=503, code="", detail="the request timed out", retry_after_s=1)


@web.middleware
async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every request, whatever happens below.

    This is one of the edges where any exception is caught: its traceback goes to the log,
    its text to nobody.
    """
    request[REQUEST_ID] = str(uuid7())
    started_s = time.monotonic()
    code = ""
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            response = await handler(request)
    except ProblemError as error:
        code = error.problem.code
        response = respond(request, error.problem)
    except web.HTTPException as error:
        response = respond(request, Denial(status=error.status, code="", detail=error.reason))
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
    except TimeoutError:
        response = respond(request, SLOW)
    except Exception:  # noqa: BLE001 - the documented edge
        _log.exception("request_failed request_id=%s", request[REQUEST_ID])
        response = respond(request, FAILED)
    _log_request(request, response.status, code, time.monotonic() - started_s)
    return response


def _log_request(request: web.Request, status: int, code: str, duration_s: float) -> None:
    resource = request.match_info.route.resource
    _log.info(
        "request_answered method=%s route=%s status=%d code=%s duration_ms=%.1f request_id=%s",
        request.method if request.method in _METHODS else "other",
        "unknown" if resource is None else resource.canonical,
        status,
        code or "-",
        duration_s * 1000,
        request[REQUEST_ID],
    )
