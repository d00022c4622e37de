"""Claims and settles events of the outbox for the relay.

Claiming, settling and measuring what waits.

The row locks are the claim: of an aggregate, who holds the first event that waits has all of
them, and a process that dies releases them. No position in the table is remembered, because
identity values do not commit in their order. The connection is the relay's own: it stays in a
transaction while a sink thinks. Source: Postgres, "SELECT", SKIP LOCKED; docs/events.md.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

import asyncpg

from reconciler.adapters.postgres.outbox.rows import (
    FOLLOWING,
    FRESH_HEADS,
    HEADS,
    RETRIED_HEADS,
    read,
)
from reconciler.domain.events.delivery import DeliveryJudgement
from reconciler.domain.events.envelope import OutboxEvent
from reconciler.ports.store.outbox import Backlog, OutboxError

STATEMENT_TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 10.0
EXPIRED_MAX: Final = 500
"""Tokens told of at once; what is left comes with the next call."""
LOOK_BACK: Final = timedelta(hours=1)
"""How far behind the last look an end of a window is still news, after the first look of a
connection at all of them: clocks and transactions differ by less."""

_PUBLISHED: LiteralString = """
UPDATE plexsphere.outbox_events
SET published_at = clock_timestamp(), available_at = NULL
WHERE id = ANY($1::uuid[]) AND published_at IS NULL
"""
"""An operator may have skipped one meanwhile that is not its aggregate's first; the same below."""

_SETBACK: LiteralString = """
UPDATE plexsphere.outbox_events
SET attempts = $2, last_error = $4, available_at = now() + $3::interval,
    parked_at = CASE WHEN $3::interval IS NULL THEN clock_timestamp() END
WHERE id = $1 AND published_at IS NULL
"""

_EXPIRED: LiteralString = """
FROM plexsphere.bootstrap_tokens
WHERE expires_at <= now() AND expires_at > $1
  AND consumed_at IS NULL AND revoked_at IS NULL AND expiry_told IS DISTINCT FROM expires_at
"""

_TELL_EXPIRED: LiteralString = (
    "UPDATE plexsphere.bootstrap_tokens SET expiry_told = expires_at WHERE id IN (SELECT id "  # noqa: S608 - constants
    + _EXPIRED
    + """
    ORDER BY expires_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
RETURNING true
"""
)
"""Locks tokens without their resource, and waits for none of them: nothing can deadlock."""

_UNTOLD: LiteralString = "SELECT EXISTS (SELECT " + _EXPIRED + ")"
"""Whether some were too many, or held by others, and wait for the next look."""

BACKLOG: LiteralString = """
SELECT count(*) AS waiting, count(*) FILTER (WHERE parked_at IS NOT NULL) AS parked,
       coalesce(now() - min(occurred_at) FILTER (
           WHERE aggregate_id NOT IN (
               SELECT aggregate_id FROM plexsphere.outbox_events WHERE parked_at IS NOT NULL
           )
       ), interval '0') AS oldest
FROM plexsphere.outbox_events WHERE published_at IS NULL
"""

LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""How a connection fails. The last is the driver's, when the server ends a session just then."""


@contextmanager
def _using(verb: str) -> Iterator[None]:
    try:
        yield
    except LOST as error:
        message = f"cannot {verb}: {type(error).__name__}"
        raise OutboxError(message) from error


class _Claim:
    """Implements `ports.store.outbox.Batch`."""

    def __init__(
        self,
        connection: asyncpg.Connection,
        streams: Sequence[Sequence[OutboxEvent]],
        now: datetime,
    ) -> None:
        self._connection = connection
        self.streams = streams
        self.now = now
        self.sink_down: bool | None = None

    async def settle(self, judgement: DeliveryJudgement) -> None:
        """Store the outcome of the events."""
        with _using("settle events"):
            if judgement.published:
                await self._connection.execute(_PUBLISHED, list(judgement.published))
            for item in judgement.setbacks:
                await self._connection.execute(
                    _SETBACK, item.event_id, item.attempts, item.retry_in, item.error
                )
        self.sink_down = judgement.sink_down


class PostgresOutbox:
    """Implements `ports.store.outbox.Outbox`; for one relay, not for several at once.

    Args:
        dsn: Where the database is; not through a pooler that shares sessions' transactions.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: asyncpg.Connection | None = None
        self._looked_at: datetime | None = None
        self._sink_down = False

    @asynccontextmanager
    async def claim(self, *, streams: int, depth: int) -> AsyncIterator[_Claim]:
        """Claim what is next of some aggregates, the longest waiting first."""
        with self._dropping():
            with _using("claim events"):
                connection = await self._open()
                transaction = connection.transaction()
                await transaction.start()
                heads = await _heads(connection, streams, sink_down=self._sink_down)
                claim = await _claimed(connection, heads, depth)
            yield claim
            with _using("settle events"):
                await transaction.commit()
        if claim.sink_down is not None:
            self._sink_down = claim.sink_down

    async def tell_expired(self) -> int:
        """Write the events of tokens whose window has passed."""
        with self._dropping(), _using("tell of expired tokens"):
            connection = await self._open()
            now: datetime = await connection.fetchval("SELECT now()")
            looked_at = self._looked_at
            since = min(looked_at, now) - LOOK_BACK if looked_at else now - timedelta(days=3660)
            told = await connection.fetch(_TELL_EXPIRED, since, EXPIRED_MAX)
            if not await connection.fetchval(_UNTOLD, since):
                self._looked_at = now
        return len(told)

    async def backlog(self) -> Backlog:
        """Return how much waits."""
        with self._dropping(), _using("measure the outbox"):
            connection = await self._open()
            row = await connection.fetchrow(BACKLOG)
        return Backlog(waiting=row["waiting"], parked=row["parked"], oldest=row["oldest"])

    async def close(self) -> None:
        """End the connection; what it claimed is free."""
        self._drop()

    async def _open(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._dsn, name="plexsphere-broker-relay")
            # The database may have been away for longer than is looked back, or be a restored one.
            self._looked_at = None
        return self._connection

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        """Free what is locked at once when this fails, whatever state the connection is in."""
        try:
            yield
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


async def connect(dsn: str, *, name: str) -> asyncpg.Connection:
    """Open a connection for this module's statements; the caller closes it.

    Args:
        dsn: Where the database is.
        name: What the server calls it in its lists.

    Raises:
        OSError: The server cannot be reached.
        asyncpg.PostgresError: It refuses us.
    """
    connection = await asyncpg.connect(
        dsn,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=STATEMENT_TIMEOUT_S,
        server_settings={
            "application_name": name,
            # A batch's longest: a process that was stopped must not keep its events for ever.
            "idle_in_transaction_session_timeout": "30s",
            # What waits is read in the order of an index and left where enough was found. A plan
            # of when there was little would read and sort all of it, for as long as it is kept.
            "plan_cache_mode": "force_generic_plan",
            "enable_seqscan": "off",
            "enable_bitmapscan": "off",
            "enable_hashjoin": "off",
            "enable_mergejoin": "off",
            "enable_sort": "off",
            "jit": "off",
        },
    )
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
    )
    return connection


async def _heads(
    connection: asyncpg.Connection, streams: int, *, sink_down: bool
) -> Sequence[asyncpg.Record]:
    if not sink_down:
        return await connection.fetch(HEADS, streams)  # type: ignore[no-any-return]
    heads = await connection.fetch(FRESH_HEADS, streams)
    if len(heads) < streams:
        heads += await connection.fetch(RETRIED_HEADS, streams - len(heads))
    return heads  # type: ignore[no-any-return]


async def _claimed(
    connection: asyncpg.Connection, heads: Sequence[asyncpg.Record], depth: int
) -> _Claim:
    if not heads:
        return _Claim(connection, (), datetime.min.replace(tzinfo=UTC))
    found = {row["aggregate_id"]: [read(row)] for row in heads}
    if depth > 1:
        following = await connection.fetch(
            FOLLOWING,
            list(found),
            [row["aggregate_sequence"] for row in heads],
            depth - 1,
        )
        for row in following:
            stream = found[row["aggregate_id"]]
            # What waits for its hour holds back what comes after it.
            if row["aggregate_sequence"] == stream[-1].sequence + 1:
                stream.append(read(row))
    return _Claim(connection, tuple(found.values()), heads[0]["now"])
