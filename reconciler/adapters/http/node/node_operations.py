"""Every operation of the node contract, served or not, as one table.

Method, path, bodies, and every refusal. The listener's routes and the OpenAPI document are
both made of it, so that neither has what the other lacks. Source: contracts §1.3 to §1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from pydantic import BaseModel

from reconciler.adapters.http.decoding import BODY_MAX_BYTES, StrictBody
from reconciler.adapters.http.middleware import FAILED, SLOW
from reconciler.adapters.http.node import node_wire
from reconciler.domain.identity.denial import Denial, denial, invariant, rate_limited

TOO_OFTEN: Final = rate_limited(1)
BEARER: Final = tuple(
    map(
        denial,
        (
            "unauthorized", "nsk_invalid", "nsk_revoked", "node_id_mismatch", "node_deregistered",
            "store_unavailable",
        ),
    )
)  # fmt: skip
"""How every operation but the registration refuses whom it does not know."""

_NODE: Final = "/v1/nodes/{node_id}"
_INGEST: Final = "observability_ingest_not_provisioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    Attributes:
        id: Its name in the OpenAPI document; the listener finds its handler by it.
        summary: What it is for.
        status: Of its success; 501 when it is not served.
        request: Its body; None when none is read.
        reply: The body of its success; None when it is not served.
        refusals: What it answers instead, in the order in which it is asked; those of the
            bearer and of every operation aside.
        authenticated: Whether it asks for a node's bearer.
    """

    id: str
    method: str
    path: str
    summary: str
    status: HTTPStatus = HTTPStatus.NOT_IMPLEMENTED
    request: type[StrictBody] | None = None
    reply: type[BaseModel] | None = None
    refusals: tuple[Denial, ...] = ()
    authenticated: bool = True

    @property
    def served(self) -> bool:
        """Whether it does anything."""
        return self.status is not HTTPStatus.NOT_IMPLEMENTED

    @property
    def asked_first(self) -> tuple[Denial, ...]:
        """How it refuses whom it does not know."""
        return (TOO_OFTEN, *BEARER) if self.authenticated else (TOO_OFTEN,)

    @property
    def problems(self) -> tuple[Denial, ...]:
        """Every refusal, in the order in which it is asked, and what may happen at any time."""
        return (*self.asked_first, *self.refusals, FAILED, SLOW)


def not_served(code: str) -> Denial:
    """Return the refusal of an operation that is not served."""
    return Denial(status=501, code=code, detail="this control plane does not serve this operation")


def _body(code: str = "") -> tuple[Denial, ...]:
    size = f"the body must hold at most {BODY_MAX_BYTES} bytes"
    return (
        Denial(
            status=415,
            code=code,
            detail="the body must be application/json without content encoding",
        ),
        Denial(status=413, code="", detail=size),
        Denial(
            status=400, code=code, detail="the body must be one JSON object that fits the schema"
        ),
    )


REGISTER: Final = Operation(
    id="register",
    method="POST",
    path="/v1/register",
    summary="Register a node with its bootstrap token.",
    status=HTTPStatus.CREATED,
    request=node_wire.RegisterRequest,
    reply=node_wire.RegisterReply,
    refusals=(
        *_body(),
        invariant("a field is missing, empty, too long, or not a UUID"),
        *map(
            denial,
            (
                "bootstrap_token_invalid", "public_key_invalid", "kind_mismatch", "token_unknown",
                "token_revoked", "token_consumed", "token_expired", "project_mismatch",
                "nonce_collision", "resource_not_found", "key_in_use", "pool_exhausted",
                "subrange_exhausted", "allocator_contention", "store_unavailable",
            ),
        ),
    ),
    authenticated=False,
)  # fmt: skip
HEARTBEAT: Final = Operation(
    id="heartbeat",
    method="POST",
    path=f"{_NODE}/heartbeat",
    summary="Report that the node is alive.",
    status=HTTPStatus.OK,
    request=node_wire.HeartbeatRequest,
    reply=node_wire.HeartbeatReply,
    refusals=(
        *_body("malformed_heartbeat_request"),
        *map(denial, ("clock_skew", "binary_checksum_empty", "binary_version_empty")),
    ),
)
STATE: Final = Operation(
    id="state",
    method="GET",
    path=f"{_NODE}/state",
    summary="Return the desired state of the node.",
    status=HTTPStatus.OK,
    reply=node_wire.StateReply,
)


def _unserved(id_: str, method: str, path: str, summary: str, code: str = "") -> Operation:
    return Operation(
        id=id_, method=method, path=path, summary=summary, refusals=(not_served(code),)
    )


OPERATIONS: Final = (
    REGISTER,
    HEARTBEAT,
    STATE,
    _unserved("events", "GET", f"{_NODE}/events", "Stream signed events.",
              "signed_event_bus_not_provisioned"),
    _unserved("getReachability", "GET", f"{_NODE}/reachability", "Return one block of the state.",
              "reachability_not_provisioned"),
    _unserved("getPresharedKey", "GET", f"{_NODE}/peers/{{peer_id}}/psk",
              "Return the key shared with a peer."),
    _unserved("putEndpoint", "PUT", f"{_NODE}/endpoint", "Report the public endpoint.",
              "endpoint_not_provisioned"),
    _unserved("putCapabilities", "PUT", f"{_NODE}/capabilities", "Report what the node can do.",
              "capabilities_not_provisioned"),
    _unserved("postMetrics", "POST", f"{_NODE}/metrics", "Deliver metrics.", _INGEST),
    _unserved("postLogs", "POST", f"{_NODE}/logs", "Deliver log lines.", _INGEST),
    _unserved("postAudit", "POST", f"{_NODE}/audit", "Deliver audit events.", _INGEST),
    _unserved("postIntegrityViolations", "POST", f"{_NODE}/integrity-violations",
              "Report changed files.", "integrity_violations_not_provisioned"),
    _unserved("putReport", "PUT", f"{_NODE}/state/reports/{{key}}", "Store a report.",
              "reports_not_provisioned"),
    _unserved("deleteReport", "DELETE", f"{_NODE}/state/reports/{{key}}", "Remove a report.",
              "reports_not_provisioned"),
    _unserved("getSecret", "GET", f"{_NODE}/secrets/{{key}}", "Return a sealed secret.",
              "secrets_not_provisioned"),
    _unserved("postExecution", "POST", f"{_NODE}/executions/{{execution_id}}",
              "Report an action's progress."),
    _unserved("postSession", "POST", f"{_NODE}/sessions/{{session_id}}",
              "Report a session's activity."),
    _unserved("deregister", "POST", f"{_NODE}/deregister",
              "Leave the mesh; nodes leave by their resource's deletion."),
    _unserved("rotateKeys", "POST", "/v1/keys/rotate", "Complete a key's rotation.",
              "keys_rotate_not_provisioned"),
)  # fmt: skip
"""What plexd calls (contracts §1.6); anything else is 404, another method 405."""
