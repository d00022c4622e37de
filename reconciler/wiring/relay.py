"""Builds the relay of events.

The relay, its outbox, its sink, and what wakes it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from prometheus_client import CollectorRegistry

from reconciler.adapters.events.open_sink import open_sink
from reconciler.adapters.events.relay_meter import PrometheusRelayMeter
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from reconciler.adapters.postgres.outbox.relay_store import PostgresOutbox
from reconciler.app.outbox.relay import Relay, RelayPorts
from reconciler.settings import Settings, SettingsError

EVENTS: Final = "events"
"""The topic that is rung when the controller committed something."""
REGISTERED: Final = "registered"
"""The topic of registrations; its detail is the resource's id."""


@asynccontextmanager
async def relaying(
    settings: Settings, notify: NotifyChannel, registry: CollectorRegistry
) -> AsyncIterator[Relay]:
    """Make the relay, which the caller runs; what it holds is closed behind the block.

    Raises:
        SettingsError: The file of authorities holds none.
    """
    try:
        sink = open_sink(
            settings.events_sink.get_secret_value(),
            source=settings.events_source,
            binary=settings.events_binary,
            stream=settings.events_stream,
            ca_file=settings.events_ca_file,
        )
    except OSError as error:
        fault = "PLEXSPHERE_EVENTS_CA_FILE: must be a file of PEM certificates"
        raise SettingsError((fault,)) from error
    outbox = PostgresOutbox(settings.dsn.get_secret_value())
    meter = PrometheusRelayMeter(registry)
    ports = RelayPorts(outbox=outbox, sink=sink, meter=meter, monotonic=time.monotonic)
    relay = Relay(ports, batch=settings.events_batch)
    for topic in (EVENTS, REGISTERED):
        notify.listen(topic, lambda _: relay.wake())
    try:
        yield relay
    finally:
        await outbox.close()
        await sink.close()
