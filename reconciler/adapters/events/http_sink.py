"""Events to a consumer's URL, one request each.

CloudEvents over HTTP, structured or binary, and what an answer means. The URL may hold
credentials and query tokens: it is in no message. Source: CloudEvents 1.0.2, HTTP binding;
HTTP webhooks for event delivery.
"""

from __future__ import annotations

import ssl
from typing import Final

import aiohttp

from reconciler.adapters.events import cloudevents
from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryOutcome
from reconciler.domain.events.envelope import OutboxEvent

TIMEOUT_S: Final = 10.0
"""One request, all of it: a consumer should take an event and work later."""
CONNECTIONS_MAX: Final = 64
"""At once to the consumer: as many aggregates as the relay publishes beside one another."""
ANSWER_MAX_BYTES: Final = 64 * 1024
"""Of an answer that is read so that its connection can be used again; more closes it."""

_ABOUT_THE_EVENT: Final = frozenset({400, 406, 409, 411, 412, 413, 415, 416, 417, 421, 422, 431})
"""Answers that would be the same again. A wrong setting may bring them about for every event, which
`domain.events.delivery` tells apart. Others of 4xx always speak of us, of the address or of now
(401, 403, 404, 408, 410, 425, 429)."""


class HTTPSink:
    """Implements `ports.store.outbox.EventSink`; to be made while a loop runs.

    Args:
        url: Where events are posted; http or https, the certificate is verified.
        source: URI of this installation.
        binary: Attributes as headers instead of one JSON object.
        tls: Trust; None is the system's.
    """

    def __init__(
        self, url: str, *, source: str, binary: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        self._url = url
        self._source = source
        self._binary = binary
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=tls or True),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "plexsphere-broker"},
        )

    async def publish(self, event: OutboxEvent) -> Delivery:
        """Post one event; 2xx takes it."""
        headers, body = self._message(event)
        try:
            # A redirect is not followed: it would carry the event, and credentials, elsewhere.
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                await answer.content.read(ANSWER_MAX_BYTES)
                return _judged(answer.status)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Delivery(outcome=DeliveryOutcome.FAILED, error=type(error).__name__)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _message(self, event: OutboxEvent) -> tuple[dict[str, str], bytes]:
        if self._binary:
            return cloudevents.binary(event, self._source)
        body = cloudevents.structured(event, self._source)
        return {"Content-Type": cloudevents.CONTENT_TYPE}, body


def _judged(status: int) -> Delivery:
    if 200 <= status < 300:
        return DELIVERED
    outcome = DeliveryOutcome.REFUSED if status in _ABOUT_THE_EVENT else DeliveryOutcome.FAILED
    return Delivery(outcome=outcome, error=f"HTTP {status}")
