"""The listener for nodes: `/v1/register` and `/v1/nodes/*`, nothing else.

Belongs here: routes and the contract's JSON. Not here: deciding. Serves the G2 contract and
takes G1's `resource_id` for `resource_handle`. Source: contracts §1.3 to §1.6.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from aiohttp import web
from pydantic import PlainValidator

from function.contract.secrets import TokenPlaintext
from reconciler.adapters.http import decoding
from reconciler.adapters.http.middleware import answer
from reconciler.adapters.http.problem import ProblemError, refuse
from reconciler.domain.broker import ids
from reconciler.domain.identity.denial import Denial, invariant, rate_limited
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.registration_body import RegistrationBody
from reconciler.ports.identity import Budget, NodeService, Registered

STATE_BLOCKS: Final = (
    "peers", "policy", "bridge", "state", "reports", "executions", "sessions", "reachability",
)  # fmt: skip
"""Blocks that `GET …/state` always holds (contracts §1.6)."""

_MALFORMED_HEARTBEAT: Final = "malformed_heartbeat_request"


def _plaintext(value: object) -> TokenPlaintext:
    if not isinstance(value, str):
        message = "must be a string"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns only this into a field's fault
    return TokenPlaintext(value)


def _instant(value: object) -> datetime:
    if not isinstance(value, str):
        message = "must be an RFC 3339 time"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns only this into a field's fault
    instant = datetime.fromisoformat(value)
    if instant.tzinfo is None:
        message = "must carry a time zone"
        raise ValueError(message)
    return instant


class _RegisterWire(decoding.Strict):
    project_id: str | None = None
    resource_handle: str | None = None
    resource_id: str | None = None
    bootstrap_token: Annotated[TokenPlaintext, PlainValidator(_plaintext)] | None = None
    nonce: str | None = None
    public_key: str | None = None
    requested_resource_id: str | None = None


class _HeartbeatWire(decoding.Strict):
    client_now: Annotated[datetime, PlainValidator(_instant)]
    binary_checksum: str
    binary_version: str
    nat_summary: dict[str, Any]


def node_app(enrolment: NodeService, *, address_budget: Budget) -> web.Application:
    """Build the node listener's application.

    Args:
        enrolment: What answers.
        address_budget: Registrations per client address.
    """
    routes = _Routes(enrolment, address_budget)
    app = web.Application(middlewares=[answer], client_max_size=decoding.BODY_MAX_BYTES)
    app.router.add_post("/v1/register", routes.register)
    app.router.add_post("/v1/nodes/{node_id}/heartbeat", routes.heartbeat)
    app.router.add_get("/v1/nodes/{node_id}/state", routes.state)
    app.router.add_route("*", "/v1/nodes/{node_id}/{rest:.*}", routes.not_implemented)
    return app


class _Routes:
    def __init__(self, enrolment: NodeService, address_budget: Budget) -> None:
        self._enrolment = enrolment
        self._address_budget = address_budget

    async def register(self, request: web.Request) -> web.Response:
        address = request.remote or "unknown"
        wait_s = self._address_budget.take(address)
        if wait_s is not None:
            raise ProblemError(rate_limited(wait_s))
        wire = await decoding.read(request, _RegisterWire)
        handle = wire.resource_handle or wire.resource_id
        if wire.resource_id and wire.resource_id != handle:
            raise ProblemError(invariant("resource_id must equal resource_handle"))
        body = RegistrationBody(
            project_id=wire.project_id or "",
            resource_handle=handle or "",
            bootstrap_token=wire.bootstrap_token or TokenPlaintext(""),
            nonce=wire.nonce or "",
            public_key=wire.public_key or "",
            requested_resource_id=wire.requested_resource_id or "",
        )
        answered = await self._enrolment.register(body, remote_address=address)
        if isinstance(answered, Denial):
            raise ProblemError(answered)
        return _json(201, _registered(answered))

    async def heartbeat(self, request: web.Request) -> web.Response:
        node_id = await self._authenticated(request)
        wire = await decoding.read(request, _HeartbeatWire, code=_MALFORMED_HEARTBEAT)
        body = HeartbeatBody(
            client_now=wire.client_now,
            binary_checksum=wire.binary_checksum,
            binary_version=wire.binary_version,
        )
        answered = await self._enrolment.heartbeat(node_id, body)
        if isinstance(answered, Denial):
            raise ProblemError(answered)
        return _json(
            200, {"accepted_at": _rfc3339(answered), "reconcile": False, "rotate_keys": False}
        )

    async def state(self, request: web.Request) -> web.Response:
        await self._authenticated(request)
        return _json(200, {block: [] for block in STATE_BLOCKS})

    async def not_implemented(self, request: web.Request) -> web.Response:
        await self._authenticated(request)
        code = ""
        if request.match_info["rest"] == "events":
            code = "signed_event_bus_not_provisioned"
        raise refuse(501, "this control plane does not serve it", code=code)

    async def _authenticated(self, request: web.Request) -> ids.NodeID:
        scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
        answered = await self._enrolment.authenticate(
            credential.strip() if scheme.lower() == "bearer" else None,
            path_node=_node_id(request.match_info["node_id"]),
        )
        if isinstance(answered, Denial):
            raise ProblemError(answered)
        return answered


def _registered(registered: Registered) -> dict[str, Any]:
    mesh = registered.mesh
    return {
        "node_id": str(registered.node_id),
        "mesh_ip": mesh.mesh_ip,
        "signing_public_key": _base64(mesh.signing_public_key),
        "signing_key_id": mesh.signing_key_id,
        "nsk": _base64(registered.nsk),
        "peer_snapshot": [
            {
                "node_id": str(peer.node_id),
                "mesh_ip": peer.mesh_ip,
                "public_key": _base64(peer.public_key),
            }
            for peer in mesh.peers
        ],
        "domain_mesh_cidr": mesh.cidr,
    }


def _json(status: int, body: dict[str, Any]) -> web.Response:
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _rfc3339(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _node_id(text: str) -> ids.NodeID | None:
    try:
        return ids.NodeID(UUID(text))
    except ValueError:
        return None
