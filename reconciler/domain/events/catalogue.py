"""Every event that is told: its payload, its aggregate, its schema.

One payload model per type, closed over all contexts; consumers' schemas are generated from
them (docs/events/). Source: seeds 000, 001 and 002, "Lifecycle events".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from reconciler.domain.events.kinds import AggregateType, FleetEventType, IdentityEventType
from reconciler.domain.events.lifecycle import FAILURE_REASON_MAX, EventType
from reconciler.domain.events.payload import NamedPayload, Payload

SCHEMA_BASE: Final = "https://provisioning.plexsphere.com/events"
"""Identifies schemas; nothing is fetched from there."""

_Region = Annotated[str, Field(description="The cluster's region; empty when it has none.")]


class _OfResource(NamedPayload):
    ProvisionedResourceID: UUID
    ProjectID: UUID
    XRName: str = Field(description="Name of the composed substrate and handle of the node.")


class Requested(_OfResource):
    """A declaration was accepted."""

    ResourceID: UUID
    BlueprintVersionID: UUID
    CloudCredentialID: UUID


class Ready(_OfResource):
    """The substrate is ready and its node registered."""


class Failed(_OfResource):
    """The substrate reported a terminal failure."""

    Reason: str = Field(max_length=FAILURE_REASON_MAX, description="The provider's message.")


class Deleting(_OfResource):
    """A deletion request was accepted."""


class Deleted(_OfResource):
    """The node is out of the mesh and the substrate is deleted."""


class _OfNode(NamedPayload):
    NodeID: UUID
    ProjectID: UUID
    DomainID: UUID
    ProvisionedResourceID: UUID
    BootstrapTokenID: UUID = Field(description="The token that the node consumed.")
    MeshIP: IPv4Address | IPv6Address


class NodeRegistered(_OfNode):
    """A machine consumed its token and joined the mesh."""


class NodeDeregistered(_OfNode):
    """The node left the mesh; another node may get its address."""


class _OfToken(NamedPayload):
    BootstrapTokenID: UUID
    ProvisionedResourceID: UUID
    ProjectID: UUID
    Generation: int = Field(ge=1, description="Number of the token among those of its resource.")
    ExpiresAt: datetime = Field(description="End of its window at the time of the event.")


class TokenIssued(_OfToken):
    """A token was issued; no event holds its text."""


class TokenRevoked(_OfToken):
    """The token was revoked and can no longer register a node."""


class TokenExpired(_OfToken):
    """The window passed unused; a renewal may reopen it, and then it may expire again."""


class ManagementClusterRegistered(Payload):
    """A management cluster was stored for the first time."""

    ManagementClusterID: UUID
    Name: str
    Slug: str
    Region: _Region


class _OfProject(Payload):
    ProjectID: UUID
    NamespaceName: str


class ProjectClusterAssigned(_OfProject):
    """A Project was placed on a cluster, or on another one."""

    ManagementClusterID: UUID
    Region: _Region


class ProjectNamespaceReady(_OfProject):
    """The Project's namespace is ready."""


class ProjectNamespaceTerminated(_OfProject):
    """The Project's namespace was deleted, with everything in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One event type.

    Attributes:
        aggregate: What it happens to.
        payload: The model of its data.
        version: Of the payload; a change that a consumer must know makes a new one.
    """

    event: StrEnum
    aggregate: AggregateType
    payload: type[Payload]
    version: int = 1

    @property
    def schema_uri(self) -> str:
        """Identify the payload's schema; the CloudEvent's `dataschema`."""
        return f"{SCHEMA_BASE}/{self.event.value}/v{self.version}.json"

    def schema(self) -> dict[str, Any]:
        """Return the payload's JSON Schema (2020-12)."""
        body = self.payload.model_json_schema()
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": self.schema_uri,
            **body,
            "title": self.event.value,
        }


_PAYLOADS: Mapping[AggregateType, Mapping[StrEnum, type[Payload]]] = {
    AggregateType.PROVISIONED_RESOURCE: {
        EventType.REQUESTED: Requested,
        EventType.READY: Ready,
        EventType.FAILED: Failed,
        EventType.DELETING: Deleting,
        EventType.DELETED: Deleted,
    },
    AggregateType.NODE: {
        IdentityEventType.NODE_REGISTERED: NodeRegistered,
        IdentityEventType.NODE_DEREGISTERED: NodeDeregistered,
    },
    AggregateType.BOOTSTRAP_TOKEN: {
        IdentityEventType.TOKEN_ISSUED: TokenIssued,
        IdentityEventType.TOKEN_REVOKED: TokenRevoked,
        IdentityEventType.TOKEN_EXPIRED: TokenExpired,
    },
    AggregateType.MANAGEMENT_CLUSTER: {
        FleetEventType.CLUSTER_REGISTERED: ManagementClusterRegistered,
    },
    AggregateType.PROJECT: {
        FleetEventType.PROJECT_ASSIGNED: ProjectClusterAssigned,
        FleetEventType.NAMESPACE_READY: ProjectNamespaceReady,
        FleetEventType.NAMESPACE_TERMINATED: ProjectNamespaceTerminated,
    },
}

CATALOGUE: Final[Mapping[str, Kind]] = {
    event.value: Kind(event=event, aggregate=aggregate, payload=payload)
    for aggregate, payloads in _PAYLOADS.items()
    for event, payload in payloads.items()
}
"""By type; closed over every context."""
