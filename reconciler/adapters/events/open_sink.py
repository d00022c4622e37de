"""The sink that the settings name.

Which scheme is which sink, and the trust of its connection.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

from reconciler.adapters.events.http_sink import HTTPSink
from reconciler.adapters.events.log_sink import LogSink
from reconciler.adapters.events.nats_sink import NATSSink
from reconciler.ports.store.outbox import EventSink


def open_sink(
    url: str,
    *,
    source: str,
    binary: bool = False,
    stream: str | None = None,
    ca_file: Path | None = None,
) -> EventSink:
    """Make a sink while a loop runs; the caller closes it. Nothing is connected yet.

    Args:
        url: `log:`, http(s)://, nats:// or tls://.
        source: URI of this installation.
        binary: HTTP's binary mode.
        stream: JetStream stream to make when it is missing.
        ca_file: Authorities in PEM form beside which no other is trusted; None is the system's.

    Raises:
        OSError: The file cannot be read, or holds no authority.
    """
    tls = None if ca_file is None else ssl.create_default_context(cafile=ca_file)
    if url.startswith(("http://", "https://")):
        return HTTPSink(url, source=source, binary=binary, tls=tls)
    if url.startswith(("nats://", "tls://")):
        return NATSSink(url, source=source, stream=stream, tls=tls)
    return LogSink(sys.stdout.buffer, source=source)
