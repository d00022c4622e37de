"""The fields that all events share: id, time, and the names that ids stand for.

The bases of payloads.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class Payload(BaseModel):
    """The fields of every payload; names are the seeds' own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    EventID: UUID = Field(description="UUIDv7, the CloudEvent's id, for deduplication.")
    OccurredAt: datetime = Field(description="When it happened, RFC 3339 in UTC.")


class NamedPayload(Payload):
    """The names that a resource's ids stand for; events stored before the names have none."""

    ProjectName: str | None = Field(default=None, description="The Project's name.")
    Namespace: str | None = Field(default=None, description="Namespace of its XR and its record.")
    OwnerKind: str | None = Field(default=None, description="Kind of its composite resource.")
    OwnerName: str | None = Field(default=None, description="Name of its composite resource.")
    ResourceName: str | None = Field(default=None, description="Its name in the Composition.")
    BlueprintName: str | None = Field(default=None, description="None for an enrolled resource.")
    CloudCredentialName: str | None = Field(default=None, description="None without a credential.")
    ManagementClusterSlug: str | None = Field(
        default=None, description="Slug of its management cluster."
    )


NAMES: Final = frozenset(NamedPayload.model_fields) - frozenset(Payload.model_fields)
"""The fields of `Named`'s own, which the schema's function `names_of` fills."""
