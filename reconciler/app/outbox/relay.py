"""Relays events from the outbox to the sink, in each aggregate's order, at least once.

How events are taken, tried and put away, and how long to rest. Every process runs one; the
outbox sees to it that no two have the same aggregate.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.domain.events.delivery import (
    Attempt,
    Delivery,
    DeliveryJudgement,
    DeliveryOutcome,
    judge,
)
from reconciler.domain.events.delivery import sink_pause_s as pause_after
from reconciler.domain.events.envelope import OutboxEvent
from reconciler.ports.store.outbox import EventBatch, EventSink, Outbox, OutboxError, RelayMeter

POLL_S: Final = 1.0
"""Between two looks without a ring: nothing is later than this because one was lost."""
STREAMS_MAX: Final = 64
"""Aggregates that are published beside one another."""
PROBE_STREAMS: Final = 8
"""Aggregates that are tried after the sink took nothing once, twice as many after each further
time: more than one, so that poisonous events are told from a sink that is away."""
BATCH_S: Final = 10.0
"""After so long no further event of a batch begins: its claim lasts no longer than this and one
attempt. What was taken by then is put away."""
CHORES_S: Final = 15.0
"""Between two measurements of the backlog, and two looks at what time brought about."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayPorts:
    """The collaborators of a relay."""

    outbox: Outbox
    sink: EventSink
    meter: RelayMeter
    monotonic: Callable[[], float]


class Relay:
    """Publishes what waits until it is cancelled.

    Args:
        ports: What it works with.
        batch: Most events that are claimed at once.
    """

    def __init__(self, ports: RelayPorts, *, batch: int) -> None:
        self._ports = ports
        self._depth = max(1, batch // STREAMS_MAX)
        self._streams = min(batch, STREAMS_MAX)
        self._rung = asyncio.Event()
        self._down = 0
        self._hasty = False
        self._chores_at = float("-inf")

    def wake(self) -> None:
        """Look at the outbox now; something was committed."""
        self._rung.set()

    async def run(self) -> None:
        """Relay for ever; a store or a sink that is away is waited for."""
        lost = 0
        while True:
            self._rung.clear()
            down = self._down
            try:
                await self._do_chores()
                more = await self.once()
                lost = 0
            except OutboxError as error:
                lost += 1
                _log.warning("outbox_lost error=%s", error)
                await asyncio.sleep(pause_after(lost) * _jitter())
                continue
            if self._down:
                await self._pause(failed=self._down > down)
            elif not more:
                await self._rest(POLL_S)

    async def once(self) -> bool:
        """Publish one batch.

        Returns:
            Whether anything was published, so that more may wait.

        Raises:
            OutboxError: The store cannot be used; the batch will be tried again.

        Idempotency: what was published and not put away is published again, with its id.
        """
        streams, depth = self._streams, self._depth
        if self._down:
            # Bounded, because an outage may last for days.
            streams, depth = min(streams, PROBE_STREAMS << min(self._down - 1, 6)), 1
        async with self._ports.outbox.claim(streams=streams, depth=depth) as batch:
            if not batch.streams:
                return False
            claimed = self._ports.monotonic()
            tried = await self._try(batch)
            judgement = judge([attempt for _, attempt in tried], failures=self._down)
            await batch.settle(judgement)
        now = batch.now + timedelta(seconds=self._ports.monotonic() - claimed)
        self._note(tried, judgement, now)
        return bool(judgement.published)

    async def _try(self, batch: EventBatch) -> Sequence[tuple[OutboxEvent, Attempt]]:
        until = self._ports.monotonic() + BATCH_S
        parts = await asyncio.gather(*(self._stream(stream, until) for stream in batch.streams))
        return [item for part in parts for item in part]

    async def _stream(
        self, events: Sequence[OutboxEvent], until: float
    ) -> list[tuple[OutboxEvent, Attempt]]:
        """Publish one aggregate's events one after the other, up to the first not taken."""
        tried: list[tuple[OutboxEvent, Attempt]] = []
        for event in events:
            if tried and self._ports.monotonic() > until:
                break
            delivery = await self._ports.sink.publish(event)
            tried.append((event, _attempt(event, delivery)))
            if delivery.outcome is not DeliveryOutcome.DELIVERED:
                break
        return tried

    def _note(
        self,
        tried: Sequence[tuple[OutboxEvent, Attempt]],
        judgement: DeliveryJudgement,
        now: datetime,
    ) -> None:
        meter = self._ports.meter
        parked = {item.event_id for item in judgement.setbacks if item.retry_in is None}
        for event, attempt in tried:
            if attempt.delivery.outcome is DeliveryOutcome.DELIVERED:
                meter.published(event.type, (now - event.occurred_at).total_seconds())
                continue
            meter.failed(event.type)
            if event.id in parked:
                meter.parked(event.type)
                _log.error(
                    "event_parked event_id=%s type=%s aggregate_id=%s error=%s",
                    event.id, event.type, event.aggregate_id, attempt.delivery.error,
                )  # fmt: skip
        if judgement.sink_down:
            self._down += 1
            errors = sorted({attempt.delivery.error for _, attempt in tried})
            _log.warning("sink_down failures=%d errors=%s", self._down, ",".join(errors))
        elif judgement.published:
            self._down = 0

    async def _do_chores(self) -> None:
        now = self._ports.monotonic()
        if now - self._chores_at < CHORES_S:
            return
        self._chores_at = now
        await self._ports.outbox.tell_expired()
        self._ports.meter.backlog(await self._ports.outbox.backlog())

    async def _pause(self, *, failed: bool) -> None:
        """Leave the sink alone; a ring is heeded unless what the last one asked for failed."""
        pause_s = pause_after(self._down) * _jitter()
        if failed and self._hasty:
            self._hasty = False
            await asyncio.sleep(pause_s)
        else:
            self._hasty = await self._rest(pause_s)

    async def _rest(self, for_s: float) -> bool:
        """Tell whether a ring came within so long."""
        try:
            async with asyncio.timeout(for_s):
                await self._rung.wait()
        except TimeoutError:
            return False
        return True


def _attempt(event: OutboxEvent, delivery: Delivery) -> Attempt:
    return Attempt(event_id=event.id, attempts=event.attempts, delivery=delivery)


def _jitter() -> float:
    return random.uniform(0.75, 1.0)  # noqa: S311 - spreads replicas, keeps no secret
