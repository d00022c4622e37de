"""Notifies every process of the broker of a commit, by LISTEN and NOTIFY.

One connection of its own that listens and notifies, and what happens when it breaks. A ring
may be lost, so nothing is right because of it: whoever listens polls as well.

Never from a trigger or inside a transaction of ours: Postgres takes one lock of the whole
database when a transaction that notified commits. Source: Postgres, "NOTIFY".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, LiteralString

import asyncpg

from reconciler.adapters.postgres.outbox.relay_store import LOST

CHANNEL: Final = "plexsphere"
COALESCE_S: Final = 0.05
"""At most twenty notifications a second of one process, whatever it commits."""
PROOF_S: Final = 5.0
"""How often a silent connection is asked; one that a firewall forgot says nothing itself."""
CONNECT_TIMEOUT_S: Final = 10.0
RETRY_S: Final = 1.0
"""Pause before another attempt to connect; the listeners' polls go on meanwhile."""
PENDING_MAX: Final = 1000
"""Rings that wait for a connection; of more, who listens hears when it is there again."""
DETAIL_MAX: Final = 512
"""Characters of a detail; Postgres takes 8000 bytes with the topic."""

_NOTIFY: LiteralString = "SELECT pg_notify($1, ring) FROM unnest($2::text[]) AS ring"

_log = logging.getLogger(__name__)

Listener = Callable[[str | None], None]
"""Gets a ring's detail; None when rings may have been missed: look at everything."""


class NotifyChannel:
    """Rings in every process that has one on the same database, this one included.

    Args:
        dsn: Where the database is; not through a pooler that shares sessions.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._listeners: dict[str, list[Listener]] = {}
        self._pending: dict[str, None] = {}
        self._wanted = asyncio.Event()

    def listen(self, topic: str, listener: Listener) -> None:
        """Call a function, on the loop, for every ring of a topic; it must not block."""
        self._listeners.setdefault(topic, []).append(listener)

    def ring(self, topic: str, detail: str = "") -> None:
        """Ring, after the commit: here at once, elsewhere within some 50 ms.

        Args:
            topic: Without a colon.
            detail: At most 512 characters; what is longer is left out.

        Idempotency: equal rings that wait are one.
        """
        detail = detail if len(detail) <= DETAIL_MAX else ""
        self._tell(topic, detail)
        if len(self._pending) < PENDING_MAX:
            self._pending[f"{topic}:{detail}"] = None
        self._wanted.set()

    async def run(self) -> None:
        """Listen and notify until cancelled, reconnecting as often as needed."""
        while True:
            try:
                await self._once()
            except LOST as error:
                _log.warning("bell_lost error=%s", type(error).__name__)
            await asyncio.sleep(RETRY_S)

    async def _once(self) -> None:
        connection = await asyncpg.connect(
            self._dsn,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=PROOF_S,
            server_settings={"application_name": "plexsphere-broker-bell"},
        )
        try:
            await connection.add_listener(CHANNEL, self._heard)
            connection.add_termination_listener(lambda _: self._wanted.set())
            for topic in self._listeners:
                self._tell(topic, None)
            while True:
                await self._turn(connection)
        finally:
            connection.terminate()

    async def _turn(self, connection: asyncpg.Connection) -> None:
        try:
            async with asyncio.timeout(PROOF_S):
                await self._wanted.wait()
        except TimeoutError:
            await connection.execute("SELECT 1")
            return
        await asyncio.sleep(COALESCE_S)
        self._wanted.clear()
        rings, self._pending = self._pending, {}
        try:
            await connection.execute(_NOTIFY, CHANNEL, list(rings))
        except BaseException:
            self._pending = {**rings, **self._pending}
            raise

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        topic, _, detail = str(payload).partition(":")
        self._tell(topic, detail)

    def _tell(self, topic: str, detail: str | None) -> None:
        for listener in self._listeners.get(topic, ()):
            listener(detail)
