"""Events as the CloudEvents SDK writes them.

The one place that makes SDK objects, so that every sink and `broker events tail` write the
same. Source: CloudEvents 1.0.2, JSON format and HTTP binding; docs/events.md.
"""

from __future__ import annotations

from typing import Final

from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from reconciler.domain.events.envelope import OutboxEvent, attributes

_FORMAT: Final = JSONFormat()
CONTENT_TYPE: Final = _FORMAT.get_content_type()


def structured(event: OutboxEvent, source: str) -> bytes:
    """Return an event in structured mode: one JSON object on one line."""
    return _FORMAT.write(_made(event, source))


def binary(event: OutboxEvent, source: str) -> tuple[dict[str, str], bytes]:
    """Return an event in binary mode: attributes as HTTP headers, and the payload."""
    message = http.to_binary(_made(event, source), _FORMAT)
    return message.headers, message.body


def _made(event: OutboxEvent, source: str) -> CloudEvent:
    return CloudEvent(attributes=attributes(event, source), data=event.payload)
