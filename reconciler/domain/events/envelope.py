"""The envelope of an event, built from its row in the outbox.

The CloudEvents attributes of an event of ours. Source: CloudEvents 1.0.2; its extensions
"Sequence" and "Partitioning".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from function.contract import names
from reconciler.domain.aggregate.ids import ProvisionedResourceID
from reconciler.domain.events.catalogue import CATALOGUE
from reconciler.domain.events.kinds import AggregateType

SEQUENCE_DIGITS: Final = 20
"""A bigint's digits and one: the extension's consumers compare sequences as text."""
_SCHEMAS: Final = {name: kind.schema_uri for name, kind in CATALOGUE.items()}
SUBJECT_ROOT: Final = "plexsphere.events"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """One row of the outbox that is to be published.

    Attributes:
        sequence: Of the aggregate, from 1.
        attempts: Failures that counted so far.
        payload: The event's data.
    """

    id: UUID
    aggregate_type: str
    aggregate_id: UUID
    sequence: int
    type: str
    occurred_at: datetime
    payload: dict[str, Any]
    attempts: int = 0


def attributes(event: OutboxEvent, source: str) -> dict[str, Any]:
    """Return the context attributes of an event; equal for every delivery of it.

    Args:
        event: What happened.
        source: URI of this installation.
    """
    schema = {"dataschema": _SCHEMAS[event.type]} if event.type in _SCHEMAS else {}
    return {
        "specversion": "1.0",
        "id": str(event.id),
        "source": source,
        "type": event.type,
        "subject": subject(event),
        "time": event.occurred_at,
        "datacontenttype": "application/json",
        **schema,
        "sequence": f"{event.sequence:0{SEQUENCE_DIGITS}d}",
        "partitionkey": str(event.aggregate_id),
    }


def subject(event: OutboxEvent) -> str:
    """Name what an event happened to, within the source."""
    if event.aggregate_type == AggregateType.PROVISIONED_RESOURCE:
        return names.xr_name(ProvisionedResourceID(event.aggregate_id))
    return str(event.aggregate_id)


def channel(event: OutboxEvent) -> str:
    """Return the NATS subject of an event: one per aggregate, so that each is in order."""
    return f"{SUBJECT_ROOT}.{event.aggregate_type}.{event.aggregate_id}"
