"""The event types of identity and of the fleet; the broker's are in `domain.events.lifecycle`.

The closed sets whose strings the triggers and functions of the schema write, and the
aggregates that events belong to. Source: seed 002 "Lifecycle events"; design §5 "Tokens".
"""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class IdentityEventType(StrEnum):
    """Of nodes and bootstrap tokens; the strings are wire contract."""

    NODE_REGISTERED = "identity.NodeRegistered"
    NODE_DEREGISTERED = "identity.NodeDeregistered"
    TOKEN_ISSUED = "identity.BootstrapTokenIssued"  # noqa: S105 - a name
    TOKEN_REVOKED = "identity.BootstrapTokenRevoked"  # noqa: S105 - a name
    TOKEN_EXPIRED = "identity.BootstrapTokenExpired"  # noqa: S105 - a name


@unique
class FleetEventType(StrEnum):
    """Of management clusters and of where Projects live; the strings are wire contract."""

    CLUSTER_REGISTERED = "managementfleet.ManagementClusterRegistered"
    PROJECT_ASSIGNED = "managementfleet.ProjectClusterAssigned"
    NAMESPACE_READY = "managementfleet.ProjectNamespaceReady"
    NAMESPACE_TERMINATED = "managementfleet.ProjectNamespaceTerminated"


@unique
class AggregateType(StrEnum):
    """The types of aggregates; the strings are stored and part of NATS subjects."""

    PROVISIONED_RESOURCE = "ProvisionedResource"
    NODE = "Node"
    BOOTSTRAP_TOKEN = "BootstrapToken"  # noqa: S105 - a name
    MANAGEMENT_CLUSTER = "ManagementCluster"
    PROJECT = "Project"
