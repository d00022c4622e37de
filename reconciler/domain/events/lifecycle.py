"""The five lifecycle events and their payloads.

The closed EventType set, whose strings equal the SQL CHECK, and the payload of each.
Source: seed 000 "Lifecycle events", seed 001 "Lifecycle events".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from function.contract.strategy import Phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.storable_text import storable

FAILURE_REASON_MAX = 1024
"""Longest failure reason in an event, in characters: a provider's message, not a log."""


@unique
class EventType(StrEnum):
    """The closed set; the strings are wire contract."""

    REQUESTED = "broker.ProvisionedResourceRequested"
    READY = "broker.ProvisionedResourceReady"
    FAILED = "broker.ProvisionedResourceFailed"
    DELETING = "broker.ProvisionedResourceDeleting"
    DELETED = "broker.ProvisionedResourceDeleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleEvent:
    """One event, before it has an id and a time.

    Attributes:
        type: Which of the five.
        generation: Bootstrap generation plus the accepted retries. Neither ever falls, as
            `spec.retry` does when an XR is recreated, so the sum tells one attempt from the
            next: a second Ready or Failed is not swallowed, and a repeated write of one attempt
            stores its event once.
        data: The payload's own fields, in the seeds' names.
    """

    type: EventType
    generation: int
    data: dict[str, str]


def on_phase(
    resource: ProvisionedResource, phase: Phase, *, failure: str = ""
) -> LifecycleEvent | None:
    """Return the event of a crossing into a phase, or None for a quiet one."""
    match phase:
        case Phase.READY:
            return _event(EventType.READY, resource)
        case Phase.FAILED:
            return _event(EventType.FAILED, resource, Reason=storable(failure)[:FAILURE_REASON_MAX])
        case Phase.DELETED:
            return _event(EventType.DELETED, resource)
        case _:
            return None


def requested(resource: ProvisionedResource) -> LifecycleEvent:
    """Return the event of an accepted declaration."""
    return _event(
        EventType.REQUESTED,
        resource,
        ResourceID=str(resource.resource_id),
        BlueprintVersionID=str(resource.blueprint_version_id),
        CloudCredentialID=str(resource.cloud_credential_id),
    )


def deleting(resource: ProvisionedResource) -> LifecycleEvent:
    """Return the event of an accepted deletion request."""
    return _event(EventType.DELETING, resource)


def _event(event_type: EventType, resource: ProvisionedResource, **more: str) -> LifecycleEvent:
    data = {
        "ProvisionedResourceID": str(resource.id),
        "ProjectID": str(resource.project_id),
        "XRName": resource.xr_name,
        **more,
    }
    attempt = resource.generation + resource.retries
    return LifecycleEvent(type=event_type, generation=attempt, data=data)
