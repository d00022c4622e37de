"""Events to NATS JetStream, one subject per aggregate.

The connection, the stream, and what an acknowledgement means. The server's URL may hold
credentials: it is in no message.

A message's id is the event's, so that a server drops what it has had within its window. Source:
CloudEvents 1.0.2, NATS binding; JetStream, "Message Deduplication".
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from datetime import timedelta
from typing import Any, Final

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, Error, NotFoundError

from reconciler.adapters.events import cloudevents
from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryOutcome
from reconciler.domain.events.envelope import SUBJECT_ROOT, OutboxEvent, channel

CONNECT_TIMEOUT_S: Final = 5
CONNECT_ALL_S: Final = 10.0
"""All servers of the URL; the relay's claim lasts as long."""
ACK_TIMEOUT_S: Final = 5.0
"""A stream on disk answers in a millisecond, one of three replicas in some."""
DEDUPE_WINDOW: Final = timedelta(minutes=10)
"""Of a stream that is made here; a server's own is two minutes. What is replayed later arrives
again, and consumers dedupe by the id."""
KEPT: Final = timedelta(days=7)
"""Of a stream that is made here: as long as we keep published events."""

_log = logging.getLogger(__name__)


class NATSSink:
    """Implements `ports.store.outbox.EventSink`; connects with the first event.

    Args:
        url: The server's, or several with commas between.
        source: URI of this installation.
        stream: Stream that is made when it is missing; None leaves streams to others.
        tls: Trust; None is the system's where the URL asks for TLS.
    """

    def __init__(
        self, url: str, *, source: str, stream: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._servers = url.split(",")
        self._source = source
        self._stream = stream
        self._tls = tls
        self._connecting: asyncio.Task[tuple[Client, JetStreamContext]] | None = None

    async def publish(self, event: OutboxEvent) -> Delivery:
        """Publish one event and wait until the stream has stored it."""
        headers = {
            api.Header.MSG_ID.value: str(event.id),
            "content-type": cloudevents.CONTENT_TYPE,
        }
        try:
            stream = await self._connected()
            await stream.publish(
                channel(event),
                cloudevents.structured(event, self._source),
                timeout=ACK_TIMEOUT_S,
                stream=self._stream,
                headers=headers,
            )
        except nats.errors.MaxPayloadError as error:
            return Delivery(outcome=DeliveryOutcome.REFUSED, error=type(error).__name__)
        except APIError as error:
            return Delivery(outcome=DeliveryOutcome.FAILED, error=f"JetStream {error.err_code}")
        except (nats.errors.Error, Error, OSError, TimeoutError, ValueError, KeyError) as error:
            # The last two: somebody else answers on our subject, and not with an acknowledgement.
            return Delivery(outcome=DeliveryOutcome.FAILED, error=type(error).__name__)
        return DELIVERED

    async def close(self) -> None:
        """End the connection."""
        connecting, self._connecting = self._connecting, None
        if connecting is None:
            return
        connecting.cancel()
        done = await asyncio.gather(connecting, return_exceptions=True)
        if isinstance(done[0], tuple):
            await done[0][0].close()

    async def _connected(self) -> JetStreamContext:
        """Return the connection; whoever waits for one waits for the same."""
        task = self._connecting
        if task is None or (task.done() and not _is_connected(task)):
            task = self._connecting = asyncio.create_task(self._connect())
            task.add_done_callback(_seen)
        _, stream = await asyncio.shield(task)
        return stream

    async def _connect(self) -> tuple[Client, JetStreamContext]:
        client = Client()
        try:
            async with asyncio.timeout(CONNECT_ALL_S):
                await client.connect(
                    self._servers,
                    name="plexsphere-broker",
                    connect_timeout=CONNECT_TIMEOUT_S,
                    # The relay tries again; nothing is to wait in a client's buffer meanwhile.
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    error_cb=_note,
                    tls=self._tls,
                )
            context = client.jetstream(timeout=ACK_TIMEOUT_S)
            await self._ensure_stream(context)
        except BaseException:
            await client.close()
            raise
        return client, context

    async def _ensure_stream(self, context: JetStreamContext) -> None:
        if self._stream is None:
            return
        try:
            await context.stream_info(self._stream)
        except NotFoundError:
            await context.add_stream(
                name=self._stream,
                subjects=[f"{SUBJECT_ROOT}.>"],
                duplicate_window=DEDUPE_WINDOW.total_seconds(),
                max_age=KEPT.total_seconds(),
            )
            _log.info("stream_made name=%s", self._stream)


def _is_connected(task: asyncio.Task[tuple[Client, JetStreamContext]]) -> bool:
    if task.cancelled() or task.exception() is not None:
        return False
    return bool(task.result()[0].is_connected)


def _seen(task: asyncio.Task[Any]) -> None:
    """Take note of a failure that whoever waited may be gone for."""
    if not task.cancelled():
        task.exception()


async def _note(error: Exception) -> None:
    _log.debug("nats_error error=%s", type(error).__name__)
