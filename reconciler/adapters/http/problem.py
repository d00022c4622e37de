"""Errors as `application/problem+json`.

The one shape of an error. Every problem has the five members of the contract and, where the
contract has one, a code; `instance` names the one request, as do the header
`X-Correlation-Id` and the log. Source: RFC 9457; contracts §1.3.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from reconciler.domain.identity.denial import Denial

REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
CONTENT_TYPE: Final = "application/problem+json"
CORRELATION: Final = "X-Correlation-Id"
"""Names the request on every error; plexd quotes it."""


class Problem(BaseModel):
    """The problem details of a refused request (RFC 9457)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str = Field(description="A URN that ends in the code; about:blank without one.")
    title: str = Field(description="The status in words.")
    status: int
    detail: str = Field(description="One sentence; names fields, never a value.")
    instance: str = Field(description="Names this one request.")
    code: str = Field(
        "", exclude_if=lambda code: not code, description="Absent where the contract has none."
    )


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
    code = problem.code if problem.told else ""
    document = Problem(
        type=f"urn:plexsphere:problem:{code}" if code else "about:blank",
        title=status.phrase,
        status=status.value,
        detail=problem.detail,
        instance=f"urn:uuid:{request[REQUEST_ID]}",
        code=code,
    )
    headers = {"Cache-Control": "no-store", CORRELATION: request[REQUEST_ID]}
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(problem.retry_after_s)
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return web.Response(
        status=status.value,
        body=document.model_dump_json().encode(),
        content_type=CONTENT_TYPE,
        headers=headers,
    )
