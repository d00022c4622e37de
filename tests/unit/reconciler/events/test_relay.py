"""How the relay takes, tries and puts away events."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry

from reconciler.adapters.events.relay_meter import PrometheusRelayMeter
from reconciler.app.outbox import relay as relays
from reconciler.app.outbox.relay import BATCH_S, PROBE_STREAMS, STREAMS_MAX, Relay, RelayPorts
from reconciler.domain.events.delivery import (
    ATTEMPTS_MAX,
    DELIVERED,
    SINK_PAUSE_MAX_S,
    Delivery,
    DeliveryOutcome,
)
from reconciler.domain.events.envelope import OutboxEvent
from reconciler.domain.events.kinds import IdentityEventType
from reconciler.ports.store.outbox import OutboxError
from tests.fakes.events import InMemoryOutbox, RecordingSink, event

FAILED = Delivery(outcome=DeliveryOutcome.FAILED, error="TimeoutError")
REFUSED = Delivery(outcome=DeliveryOutcome.REFUSED, error="HTTP 400")
DEADLINE_S = 20.0
NODE = {"type": IdentityEventType.NODE_REGISTERED.value}
PAUSE = timedelta(seconds=SINK_PAUSE_MAX_S)


class Stage:
    """A relay with what it works on."""

    def __init__(self, *, batch: int = 512) -> None:
        self.outbox = InMemoryOutbox()
        self.sink = RecordingSink()
        self.counts = CollectorRegistry()
        self.at = 0.0
        ports = RelayPorts(
            outbox=self.outbox,
            sink=self.sink,
            meter=PrometheusRelayMeter(self.counts),
            monotonic=lambda: self.at,
        )
        self.relay = Relay(ports, batch=batch)

    def counted(self, what: str) -> float | None:
        """Return a count of events of a node; None where none was ever counted."""
        return self.counts.get_sample_value(f"plexsphere_events_{what}_total", NODE)

    def shown(self, what: str) -> float | None:
        """Return what was measured of the backlog last."""
        return self.counts.get_sample_value(f"plexsphere_events_{what}")

    async def until_quiet(self) -> None:
        while await self.relay.once():
            pass

    async def for_pauses(self, count: int) -> None:
        """Let the relay look again and again, a pause between."""
        for _ in range(count):
            await self.until_quiet()
            self.outbox.now += PAUSE


async def test_each_aggregate_is_published_in_its_order() -> None:
    stage = Stage()
    aggregates = [uuid4() for _ in range(5)]
    stage.outbox.add(*(event(each, number) for number in range(1, 21) for each in aggregates))

    await stage.until_quiet()

    for each in aggregates:
        numbers = [item.sequence for item in stage.sink.taken if item.aggregate_id == each]
        assert numbers == list(range(1, 21))


async def test_a_failure_stops_its_aggregate_and_no_other() -> None:
    stage = Stage()
    ill, well = uuid4(), uuid4()
    stage.outbox.add(*(event(each, number) for each in (ill, well) for number in (1, 2, 3)))
    stage.sink.answer = lambda item: FAILED if _is(item, ill, 2) else DELIVERED

    await stage.until_quiet()

    assert [item.sequence for item in stage.sink.taken if item.aggregate_id == ill] == [1]
    assert [item.sequence for item in stage.sink.taken if item.aggregate_id == well] == [1, 2, 3]
    assert [item.sequence for item in stage.outbox.waiting] == [2, 3]


async def test_a_poisonous_event_parks_its_aggregate_alone() -> None:
    stage = Stage()
    ill = uuid4()
    stage.outbox.add(event(ill, 1), event(ill, 2))
    stage.sink.answer = lambda item: REFUSED if item.aggregate_id == ill else DELIVERED
    await stage.until_quiet()

    stage.outbox.add(event(uuid4(), 1))
    await stage.until_quiet()

    assert [item.sequence for item in stage.outbox.parked] == [1]
    assert [item.aggregate_id for item in stage.sink.tried].count(ill) == 1
    assert len(stage.sink.taken) == 1
    assert [stage.counted(each) for each in ("failed", "parked", "published")] == [1, 1, 1]


async def test_an_event_that_keeps_failing_beside_others_is_parked_in_the_end() -> None:
    stage = Stage()
    ill = uuid4()
    stage.outbox.add(event(ill, 1))
    stage.sink.answer = lambda item: FAILED if item.aggregate_id == ill else DELIVERED

    for _ in range(ATTEMPTS_MAX):
        stage.outbox.add(event(uuid4(), 1))
        await stage.until_quiet()
        stage.outbox.now += timedelta(minutes=5)

    assert [item.aggregate_id for item in stage.outbox.parked] == [ill]


async def test_an_outage_parks_nothing_however_long_it_lasts() -> None:
    stage = Stage()
    aggregates = [uuid4() for _ in range(3)]
    stage.outbox.add(*(event(each, number) for number in (1, 2) for each in aggregates))
    stage.sink.answer = lambda _: FAILED
    await stage.for_pauses(10 * ATTEMPTS_MAX)

    stage.sink.answer = lambda _: DELIVERED
    await stage.for_pauses(3)

    assert not stage.outbox.waiting
    assert {item.attempts for item in stage.sink.taken} == {0}


async def test_one_wrong_setting_parks_nothing_though_the_sink_calls_every_event_wrong() -> None:
    stage = Stage()
    stage.outbox.add(*(event(uuid4(), 1) for _ in range(20)))
    stage.sink.answer = lambda _: REFUSED
    await stage.for_pauses(10)
    for _ in range(5):
        stage.outbox.add(event(uuid4(), 1))
        await stage.for_pauses(3)
    assert not stage.outbox.parked

    stage.sink.answer = lambda _: DELIVERED
    await stage.for_pauses(3)

    assert not stage.outbox.waiting


async def test_a_wrong_setting_in_a_quiet_hour_parks_one_event_at_most() -> None:
    stage = Stage()
    stage.sink.answer = lambda _: REFUSED

    for _ in range(5):
        stage.outbox.add(event(uuid4(), 1))
        await stage.for_pauses(3)

    assert len(stage.outbox.parked) == 1


@pytest.mark.parametrize("ill", [1, PROBE_STREAMS, STREAMS_MAX + 1])
@pytest.mark.parametrize("answer", [FAILED, REFUSED])
async def test_events_that_are_never_taken_hold_back_no_other_aggregate(
    ill: int, answer: Delivery
) -> None:
    stage = Stage()
    poisoned = [uuid4() for _ in range(ill)]
    stage.outbox.add(*(event(each, number) for each in poisoned for number in (1, 2)))
    stage.sink.answer = lambda item: answer if item.aggregate_id in poisoned else DELIVERED
    await stage.for_pauses(20)

    well = [event(uuid4(), 1) for _ in range(20)]
    stage.outbox.add(*well)
    await stage.for_pauses(4)

    assert {item.id for item in stage.sink.taken} == {item.id for item in well}
    assert {item.sequence for item in stage.sink.tried if item.aggregate_id in poisoned} == {1}


async def test_a_sink_that_is_away_is_asked_with_little_at_first() -> None:
    stage = Stage()
    stage.outbox.add(*(event(uuid4(), 1) for _ in range(1000)))
    stage.sink.answer = lambda _: FAILED
    asked = []
    for _ in range(6):
        stage.sink.tried.clear()
        await stage.relay.once()
        asked.append(len(stage.sink.tried))

    assert asked == [STREAMS_MAX, PROBE_STREAMS, 16, 32, STREAMS_MAX, STREAMS_MAX]


async def test_a_ring_cuts_the_pause_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "pause_after", lambda _: 3600.0)
    stage = Stage()
    ill = uuid4()
    stage.outbox.add(event(ill, 1))
    stage.sink.answer = lambda item: FAILED if item.aggregate_id == ill else DELIVERED

    running = asyncio.create_task(stage.relay.run())
    async with asyncio.timeout(DEADLINE_S):
        while not stage.sink.tried:  # noqa: ASYNC110 - the relay signals nothing
            await asyncio.sleep(0.01)
        stage.outbox.add(event(uuid4(), 1))
        stage.relay.wake()
        while not stage.sink.taken:  # noqa: ASYNC110 - the relay signals nothing
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert len(stage.sink.tried) == 2


async def test_rings_make_no_haste_with_a_sink_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relays, "pause_after", lambda _: 3600.0)
    stage = Stage()
    stage.sink.answer = lambda _: FAILED
    running = asyncio.create_task(stage.relay.run())

    for _ in range(100):
        stage.outbox.add(event(uuid4(), 1))
        stage.relay.wake()
        for _ in range(10):
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert len(stage.sink.tried) == 2, "one, and one that a ring asked for"


async def test_a_batch_ends_when_it_took_long() -> None:
    stage = Stage()
    aggregate = uuid4()
    stage.outbox.add(*(event(aggregate, number) for number in (1, 2, 3)))

    def slowly(_: OutboxEvent) -> Delivery:
        stage.at += BATCH_S + 1
        return DELIVERED

    stage.sink.answer = slowly
    await stage.relay.once()

    assert [item.sequence for item in stage.outbox.waiting] == [2, 3]


async def test_a_batch_is_as_large_as_was_asked_for() -> None:
    stage = Stage(batch=3)
    stage.outbox.add(*(event(uuid4(), 1) for _ in range(7)))

    await stage.relay.once()

    assert len(stage.sink.taken) == 3


async def test_a_ring_is_answered_at_once_and_the_backlog_measured() -> None:
    stage = Stage()
    parked = event(uuid4(), 1)
    stage.outbox.add(parked)
    stage.outbox.rows[parked.id].parked = True
    running = asyncio.create_task(stage.relay.run())
    async with asyncio.timeout(DEADLINE_S):
        while not stage.shown("parked_now"):  # noqa: ASYNC110 - the relay signals nothing
            await asyncio.sleep(0)
        stage.outbox.add(event(uuid4(), 1))
        stage.relay.wake()
        while not stage.sink.taken:  # noqa: ASYNC110 - the relay signals nothing
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert stage.shown("waiting") == 1


async def test_a_store_that_is_away_is_waited_for() -> None:
    stage = Stage()
    lost = OutboxError("cannot claim events: ConnectionRefusedError")
    answers: list[OutboxError | int] = [lost, 0]

    async def tell_expired() -> int:
        answer = answers.pop(0) if answers else 0
        if isinstance(answer, OutboxError):
            stage.at += 100
            raise answer
        return answer

    stage.outbox.tell_expired = tell_expired  # type: ignore[method-assign]
    stage.outbox.add(event(uuid4(), 1))
    running = asyncio.create_task(stage.relay.run())
    async with asyncio.timeout(DEADLINE_S):
        while not stage.sink.taken:  # noqa: ASYNC110 - the relay signals nothing
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert not answers


def _is(item: OutboxEvent, aggregate: object, sequence: int) -> bool:
    return item.aggregate_id == aggregate and item.sequence == sequence
