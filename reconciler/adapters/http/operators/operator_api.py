"""The operators' API: reads tokens, placements and ids; revokes tokens, deregisters nodes.

Routes and JSON. A token's text and digest are in no answer: the rows do not hold them.
Minting is not served: a token belongs to a resource, and the broker issues it. Source:
contracts §3.4, §3.5.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, NoReturn
from uuid import UUID

from aiohttp import web

from reconciler.adapters.http.operators.operator_auth import Gate
from reconciler.adapters.http.problem import ProblemError, refuse
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.domain.identity.denial import Denial
from reconciler.ports.operators import (
    REASON_MAX,
    Assignment,
    NamedID,
    NodeDeregistration,
    OperatorStore,
    TokenMetadata,
    TokenRevocation,
)
from reconciler.ports.registration import AllocationLostError, StoreUnavailableError

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 500
"""Tokens of one page, some 150 kB."""

_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""The one spelling of an id, so that a path has one spelling too: rights are given by path."""
_PROJECT: Final = f"/v1/projects/{{project_id:{_ID}}}"
_TOKENS: Final = f"{_PROJECT}/bootstrap-tokens"

_UNAVAILABLE: Final = Denial(
    status=503,
    code="store_unavailable",
    detail="the store is unavailable; retry later",
    retry_after_s=1,
)
_log = logging.getLogger(__name__)


class OperatorAPI:
    """The routes of the operators' listener that need a credential.

    Args:
        gate: Lets a request through.
        store: What is read and revoked.
    """

    def __init__(self, gate: Gate, store: OperatorStore) -> None:
        self._gate = gate
        self._store = store

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Register the routes."""
        one = f"{_TOKENS}/{{token_id:{_ID}}}"
        router.add_get(
            f"{_PROJECT}/management-cluster-assignment", self.assignment, allow_head=False
        )
        router.add_get(_TOKENS, self.tokens, allow_head=False)
        router.add_post(_TOKENS, self.issue)
        router.add_get(one, self.token, allow_head=False)
        router.add_delete(one, self.revoke)
        router.add_delete(f"{_PROJECT}/nodes/{{node_id:{_ID}}}", self.deregister)
        router.add_get(f"{_PROJECT}/ids/{{wanted:{_ID}}}", self.named, allow_head=False)

    async def assignment(self, request: web.Request) -> web.Response:
        """Answer where a Project lives."""
        await self._gate.admit(request)
        try:
            found = await self._store.assignment(_project(request))
        except StoreUnavailableError:
            raise ProblemError(_UNAVAILABLE) from None
        if found is None:
            raise refuse(404, "the Project is not placed", code="management_assignment_not_found")
        return _json(_members(found))

    async def tokens(self, request: web.Request) -> web.Response:
        """Answer one page of a Project's tokens."""
        await self._gate.admit(request)
        limit, after = _limit(request), _cursor(request)
        try:
            found = await self._store.tokens(_project(request), after=after, limit=limit)
        except StoreUnavailableError:
            raise ProblemError(_UNAVAILABLE) from None
        cursor = str(found[-1].id) if len(found) == limit else None
        return _json({"items": [_members(row) for row in found], "next_cursor": cursor})

    async def token(self, request: web.Request) -> web.Response:
        """Answer one token's metadata."""
        await self._gate.admit(request)
        try:
            found = await self._store.token(_project(request), _token(request))
        except StoreUnavailableError:
            raise ProblemError(_UNAVAILABLE) from None
        if found is None:
            raise refuse(404, "the Project has no token with this id")
        return _json(_members(found))

    async def revoke(self, request: web.Request) -> web.Response:
        """Revoke one token; who did is audited and logged."""
        user = await self._gate.admit(request)
        project, token = _project(request), _token(request)
        try:
            outcome = await self._store.revoke(project, token, by=user)
        except (StoreUnavailableError, AllocationLostError):
            raise ProblemError(_UNAVAILABLE) from None
        except InvalidInputError:
            raise refuse(400, "the user's name cannot be stored in the audit") from None
        _log.info(
            "operator_revokes user=%r project=%s token=%s outcome=%s", user, project, token, outcome
        )
        if outcome is TokenRevocation.ABSENT:
            raise refuse(404, "the Project has no token with this id")
        if outcome is TokenRevocation.SPENT:
            raise refuse(409, "the token is already consumed or revoked")
        return web.Response(status=204, headers={"Cache-Control": "no-store"})

    async def deregister(self, request: web.Request) -> web.Response:
        """Take out a node that its resource left behind; who did and why is audited and logged."""
        user = await self._gate.admit(request)
        reason = request.query.get("reason", "").strip()
        if not (1 <= len(reason) <= REASON_MAX and reason.isprintable()):
            raise refuse(400, f"reason must be one printable line of 1 to {REASON_MAX} characters")
        project, node = _project(request), ids.NodeID(UUID(request.match_info["node_id"]))
        try:
            outcome = await self._store.deregister(project, node, by=user, reason=reason)
        except (StoreUnavailableError, AllocationLostError):
            raise ProblemError(_UNAVAILABLE) from None
        except InvalidInputError:
            raise refuse(400, "the user's name cannot be stored in the audit") from None
        _log.info(
            "operator_deregisters user=%r project=%s node=%s outcome=%s",
            user, project, node, outcome,
        )  # fmt: skip
        if outcome is NodeDeregistration.ABSENT:
            raise refuse(404, "the Project has no node with this id")
        if outcome is NodeDeregistration.ALIVE:
            raise refuse(409, "its resource exists: delete the resource to deregister the node")
        return web.Response(status=204, headers={"Cache-Control": "no-store"})

    async def named(self, request: web.Request) -> web.Response:
        """Answer what an id stands for."""
        await self._gate.admit(request)
        try:
            found = await self._store.named(_project(request), UUID(request.match_info["wanted"]))
        except StoreUnavailableError:
            raise ProblemError(_UNAVAILABLE) from None
        if found is None:
            raise refuse(404, "the Project has no object with this id")
        return _json(_members(found))

    async def issue(self, request: web.Request) -> NoReturn:
        """Refuse to mint: a token that is bound to no resource could enrol any."""
        await self._gate.admit(request)
        raise refuse(501, "tokens cannot be created here; the broker issues one per resource")


def _project(request: web.Request) -> ids.ProjectID:
    return ids.ProjectID(UUID(request.match_info["project_id"]))


def _token(request: web.Request) -> ids.BootstrapTokenID:
    return ids.BootstrapTokenID(UUID(request.match_info["token_id"]))


def _limit(request: web.Request) -> int:
    text = request.query.get("limit", str(PAGE_DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= PAGE_MAX):
        raise refuse(400, f"limit must lie between 1 and {PAGE_MAX}")
    return int(text)


def _cursor(request: web.Request) -> ids.BootstrapTokenID | None:
    text = request.query.get("cursor")
    if text is None:
        return None
    try:
        return ids.BootstrapTokenID(UUID(text))
    except ValueError:
        raise refuse(400, "cursor must be the next_cursor of an earlier page") from None


def _members(row: Assignment | NamedID | TokenMetadata) -> dict[str, Any]:
    """Return a row's members; what is not known is left out, as the contract's optional ones."""
    return {name: _wire(value) for name, value in asdict(row).items() if value is not None}


def _wire(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


def _json(body: dict[str, Any]) -> web.Response:
    return web.json_response(body, headers={"Cache-Control": "no-store"})
