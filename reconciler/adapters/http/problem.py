"""Errors as `application/problem+json`.

Belongs here: the one shape of an error. Not here: which error. Every problem has the five
members of the contract and, where the contract has one, a code; `instance` names the one
request and is also in the log. Source: RFC 9457; contracts §1.3.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from aiohttp import web

from reconciler.domain.identity.denial import Denial

REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)


class ProblemError(Exception):
    """A request that ends in a problem document.

    Attributes:
        problem: What the client is told.
    """

    def __init__(self, problem: Denial) -> None:
        self.problem = problem
        super().__init__(problem.code or problem.detail)


def refuse(status: int, detail: str, *, code: str = "") -> ProblemError:
    """Return the error of a request that is refused before anything is decided."""
    return ProblemError(Denial(status=status, code=code, detail=detail))


def respond(request: web.Request, problem: Denial) -> web.Response:
    """Return a problem's response, with `Retry-After` in whole seconds where there is one."""
    status = HTTPStatus(problem.status)
    members: dict[str, Any] = {
        "type": f"urn:plexsphere:problem:{problem.code}" if problem.code else "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": problem.detail,
        "instance": f"urn:uuid:{request[REQUEST_ID]}",
    }
    if problem.code:
        members["code"] = problem.code
    headers = {"Cache-Control": "no-store"}
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(problem.retry_after_s)
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return web.Response(
        status=status.value,
        body=json.dumps(members).encode(),
        content_type="application/problem+json",
        headers=headers,
    )
