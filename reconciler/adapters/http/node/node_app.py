"""The listener for nodes: `/v1/register`, `/v1/nodes/*` and `/v1/keys/rotate`, nothing else.

One handler per operation. Serves the G2 contract and takes G1's `resource_id` for
`resource_handle`. Source: contracts §1.3 to §1.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Protocol
from uuid import UUID

from aiohttp import web
from aiohttp.typedefs import Handler

from reconciler.adapters.http import decoding
from reconciler.adapters.http.middleware import answer
from reconciler.adapters.http.node import node_operations
from reconciler.adapters.http.node.node_operations import OPERATIONS, Operation
from reconciler.adapters.http.node.node_wire import (
    HeartbeatReply,
    HeartbeatRequest,
    RegisterReply,
    RegisterRequest,
    StateReply,
)
from reconciler.adapters.http.problem import ProblemError
from reconciler.adapters.http.rate_limit import address_key
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial, invariant, rate_limited
from reconciler.ports.registration import Budget, NodeService

_MALFORMED_HEARTBEAT: Final = "malformed_heartbeat_request"


class BearerBudget(Budget, Protocol):
    """A budget of which what was taken can be given back."""

    def give_back(self, key: str) -> None:
        """Return one to a key's budget."""
        ...


def node_app(
    enrolment: NodeService, *, address_budget: Budget, bearer_budget: BearerBudget
) -> web.Application:
    """Build the node listener's application.

    Args:
        enrolment: What answers.
        address_budget: Registrations per client address, an IPv6 /64 counting as one.
        bearer_budget: Requests with a bearer. One that proves a node spends that node's; any
            other, and each for as long as it is being asked for, its address's. So thousands
            of nodes may share an address, and nobody may guess or ask without end.
    """
    handlers = _Handlers(enrolment, address_budget, bearer_budget)
    served: Mapping[str, Handler] = {
        node_operations.REGISTER.id: handlers.register,
        node_operations.HEARTBEAT.id: handlers.heartbeat,
        node_operations.STATE.id: handlers.state,
    }
    app = web.Application(middlewares=[answer], client_max_size=decoding.BODY_MAX_BYTES)
    for operation in OPERATIONS:
        handler = served[operation.id] if operation.served else handlers.refusing(operation)
        app.router.add_route(operation.method, operation.path, handler)
    return app


class _Handlers:
    def __init__(
        self, enrolment: NodeService, address_budget: Budget, bearer_budget: BearerBudget
    ) -> None:
        self._enrolment = enrolment
        self._address_budget = address_budget
        self._bearer_budget = bearer_budget

    async def register(self, request: web.Request) -> web.Response:
        _spend(self._address_budget, address_key(request.remote))
        wire = await decoding.read(request, RegisterRequest)
        body = wire.body()
        if wire.resource_id and wire.resource_id != body.resource_handle:
            raise ProblemError(invariant("resource_id must equal resource_handle"))
        answered = await self._enrolment.register(body, remote_address=request.remote or "unknown")
        if isinstance(answered, Denial):
            raise ProblemError(answered)
        return _json(HTTPStatus.CREATED, RegisterReply.text(answered))

    async def heartbeat(self, request: web.Request) -> web.Response:
        node_id = await self._authenticated(request)
        wire = await decoding.read(request, HeartbeatRequest, code=_MALFORMED_HEARTBEAT)
        answered = await self._enrolment.heartbeat(node_id, wire.body())
        if isinstance(answered, Denial):
            raise ProblemError(answered)
        reply = HeartbeatReply(accepted_at=answered, reconcile=False, rotate_keys=False)
        return _json(HTTPStatus.OK, reply.model_dump_json())

    async def state(self, request: web.Request) -> web.Response:
        node_id = await self._authenticated(request)
        answered = await self._enrolment.state(node_id)
        if isinstance(answered, Denial):
            raise ProblemError(answered)
        return _json(HTTPStatus.OK, StateReply.text(answered))

    def refusing(self, operation: Operation) -> Handler:
        """Return the handler of an operation that is not served; it knows its nodes first."""
        (refusal,) = operation.refusals

        async def refuse(request: web.Request) -> web.Response:
            await self._authenticated(request)
            raise ProblemError(refusal)

        return refuse

    async def _authenticated(self, request: web.Request) -> ids.NodeID:
        address = address_key(request.remote)
        _spend(self._bearer_budget, address)
        scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
        named = request.match_info.get("node_id")
        answered = await self._enrolment.authenticate(
            credential.strip() if scheme.lower() == "bearer" else None,
            path_node=None if named is None else _node_id(named),
            any_node=named is None,
        )
        if isinstance(answered, Denial):
            if answered.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                # Nobody was told apart.
                self._bearer_budget.give_back(address)
            raise ProblemError(answered)
        self._bearer_budget.give_back(address)
        _spend(self._bearer_budget, f"node {answered}")
        return answered


def _spend(budget: Budget, key: str) -> None:
    wait_s = budget.take(key)
    if wait_s is not None:
        raise ProblemError(rate_limited(wait_s))


def _json(status: HTTPStatus, reply: str) -> web.Response:
    return web.Response(
        status=status,
        body=reply.encode(),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def _node_id(text: str) -> ids.NodeID | None:
    try:
        return ids.NodeID(UUID(text))
    except ValueError:
        return None
