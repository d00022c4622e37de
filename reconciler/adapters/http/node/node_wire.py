"""The JSON of the node listener: what is read, and what is answered.

One model per body, with the schema that the OpenAPI document shows. Requests leave fields
out that plexd must send, because the domain says which one is missing. Source: contracts
§1.3, §1.6.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from function.contract.secrets import TokenPlaintext
from reconciler.adapters.http.decoding import StrictBody
from reconciler.domain.identity import state
from reconciler.domain.identity.heartbeat import VERSION_MAX, HeartbeatBody
from reconciler.domain.identity.peers import Peers
from reconciler.domain.identity.registration_body import FIELD_MAX, RegistrationBody
from reconciler.ports.registration import NodeState, Registered

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_KEY_PATTERN: Final = "^[A-Za-z0-9+/]{43}=$"
_SHA256_PATTERN: Final = "^([0-9a-f]{64}|[A-Za-z0-9+/]{43}=)$"
_TOKEN_PATTERN: Final = "^psb_[a-z]+_[a-z2-7]{26}_(node|bridge)_[a-z2-7]{20,}$"  # noqa: S105 - a form
_SOME_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": FIELD_MAX}


def _plaintext(value: object) -> TokenPlaintext:
    if not isinstance(value, str):
        message = "must be a string"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns only this into a field's fault
    return TokenPlaintext(value)


def _instant(value: object) -> datetime:
    if not isinstance(value, str) or _RFC3339.fullmatch(value) is None:
        message = "must be an RFC 3339 time"
        raise ValueError(message)
    return datetime.fromisoformat(value)


_Text = Annotated[str | None, WithJsonSchema(_SOME_TEXT)]
_ProjectID = Annotated[str | None, WithJsonSchema({"type": "string", "format": "uuid"})]
_PublicKey = Annotated[str | None, WithJsonSchema({"type": "string", "pattern": _KEY_PATTERN})]
_Token = Annotated[
    TokenPlaintext | None,
    PlainValidator(_plaintext),
    WithJsonSchema({**_SOME_TEXT, "pattern": _TOKEN_PATTERN}),
]
_Instant = Annotated[
    datetime,
    PlainValidator(_instant),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class RegisterRequest(StrictBody):
    """A node that wants into the mesh."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": ["project_id", "bootstrap_token", "nonce", "public_key"],
            "anyOf": [{"required": ["resource_handle"]}, {"required": ["resource_id"]}],
        }
    )

    project_id: _ProjectID = Field(None, description="Not the zero UUID.")
    resource_handle: _Text = Field(None, description="The handle of the resource it is.")
    resource_id: _Text = Field(None, description="The first contract's name of resource_handle.")
    bootstrap_token: _Token = Field(None, description="Spent by a 201, and by nothing else.")
    nonce: _Text = Field(None, description="One per registration, the same in its retries.")
    public_key: _PublicKey = Field(None, description="X25519, 32 bytes, of full order.")
    requested_resource_id: Annotated[
        str | None, WithJsonSchema({"type": "string", "maxLength": FIELD_MAX})
    ] = Field(None, description="Read and not used.")

    def body(self) -> RegistrationBody:
        """Return the body, empty where a field is absent."""
        return RegistrationBody(
            project_id=self.project_id or "",
            resource_handle=self.resource_handle or self.resource_id or "",
            bootstrap_token=self.bootstrap_token or TokenPlaintext(""),
            nonce=self.nonce or "",
            public_key=self.public_key or "",
            requested_resource_id=self.requested_resource_id or "",
        )


class HeartbeatRequest(StrictBody):
    """A node that is alive."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": ["client_now", "binary_checksum", "binary_version", "nat_summary"]
        }
    )

    client_now: _Instant = Field(description="Within 60 s of the server's clock.")
    binary_checksum: Annotated[
        str, WithJsonSchema({"type": "string", "pattern": _SHA256_PATTERN})
    ] = Field("", description="SHA-256 of the agent, hexadecimal or base64.")
    binary_version: Annotated[
        str, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": VERSION_MAX})
    ] = Field("", description="Not blank.")
    nat_summary: dict[str, Any] = Field(description="An object, never null; not stored.")

    def body(self) -> HeartbeatBody:
        """Return what is judged."""
        return HeartbeatBody(
            client_now=self.client_now,
            binary_checksum=self.binary_checksum,
            binary_version=self.binary_version,
        )


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


_Key = Annotated[str, Field(pattern=_KEY_PATTERN)]


class PeerReply(_Reply):
    """Another live node of the Project."""

    node_id: UUID
    mesh_ip: str
    public_key: _Key


class RegisterReply(_Reply):
    """A node that is in the mesh; its key is told here and nowhere else."""

    node_id: UUID
    mesh_ip: str = Field(description="Canonical, without a prefix, inside domain_mesh_cidr.")
    signing_public_key: _Key = Field(description="Ed25519, 32 raw bytes.")
    signing_key_id: str
    nsk: _Key = Field(repr=False, description="The node's secret key, 32 bytes.")
    peer_snapshot: tuple[PeerReply, ...] = Field(description="By node_id.")
    domain_mesh_cidr: str

    @classmethod
    def text(cls, registered: Registered) -> str:
        """Return a registered node as it is told."""
        mesh = registered.mesh
        reply = cls(
            node_id=registered.node_id,
            mesh_ip=mesh.mesh_ip,
            signing_public_key=_base64(mesh.signing_public_key),
            signing_key_id=mesh.signing_key_id,
            nsk=_base64(registered.nsk),
            peer_snapshot=(),
            domain_mesh_cidr=mesh.cidr,
        )
        return _with_peers(reply, "peer_snapshot", mesh.peers)


class HeartbeatReply(_Reply):
    """When a heartbeat was accepted, and what the node should do."""

    accepted_at: datetime
    reconcile: bool
    rotate_keys: bool


class ReachabilityReply(_Reply):
    """The control plane's verdict of the node."""

    state: state.Reachability
    last_heartbeat_at: Annotated[
        datetime | None, WithJsonSchema({"type": "string", "format": "date-time"})
    ] = Field(
        None,
        exclude_if=lambda value: value is None,
        description="Absent for as long as the node never reported.",
    )
    changed_at: datetime


class EntriesReply(_Reply):
    """Metadata, data and reports of the node; this control plane keeps none."""

    metadata: tuple[()]
    data: tuple[()]
    reports: tuple[()]


class StateReply(_Reply):
    """The desired state of the node. Every block is always present; null is not populated."""

    peers: tuple[PeerReply, ...] = Field(description="By node_id.")
    reachability: ReachabilityReply
    policy: None
    bridge: None
    state: EntriesReply
    reports: EntriesReply
    executions: tuple[()]
    sessions: tuple[()]

    @classmethod
    def text(cls, node: NodeState) -> str:
        """Return a node's state as it is told."""
        verdict = state.judge(
            last_heartbeat_at=node.last_heartbeat_at, changed_at=node.changed_at, now=node.now
        )
        nothing = EntriesReply(metadata=(), data=(), reports=())
        reply = cls(
            peers=(),
            reachability=ReachabilityReply(
                state=verdict.state,
                last_heartbeat_at=verdict.last_heartbeat_at,
                changed_at=verdict.changed_at,
            ),
            policy=None,
            bridge=None,
            state=nothing,
            reports=nothing,
            executions=(),
            sessions=(),
        )
        return _with_peers(reply, "peers", node.peers)


def _with_peers(reply: _Reply, field: str, peers: Peers) -> str:
    """Write a reply with the peers' own text, which is not taken apart for it."""
    return f'{{"{field}":{peers.json},{reply.model_dump_json(exclude={field})[1:]}'


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
