"""Events into a stream of lines: what a deployment without a broker of events starts with.

One structured CloudEvent per line. The only sink that cannot tell whether anybody reads.
"""

from __future__ import annotations

from typing import BinaryIO

from reconciler.adapters.events import cloudevents
from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryOutcome
from reconciler.domain.events.envelope import OutboxEvent


class LogSink:
    """Implements `ports.store.outbox.EventSink`.

    Args:
        stream: Gets the lines, flushed one by one; not closed here.
        source: URI of this installation.
    """

    def __init__(self, stream: BinaryIO, *, source: str) -> None:
        self._stream = stream
        self._source = source

    async def publish(self, event: OutboxEvent) -> Delivery:
        """Write one line."""
        line = cloudevents.structured(event, self._source) + b"\n"
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError) as error:
            return Delivery(outcome=DeliveryOutcome.FAILED, error=type(error).__name__)
        return DELIVERED

    async def close(self) -> None:
        """Leave the stream as it is."""
