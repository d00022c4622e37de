"""What `ports.store.outbox.EventSink` promises, of every sink."""

from __future__ import annotations

import asyncio
import io
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats
import pytest

from dev.nats import NATS
from dev.process import free_port
from dev.supervisor import Supervisor
from reconciler.adapters.events import cloudevents
from reconciler.adapters.events.http_sink import HTTPSink
from reconciler.adapters.events.log_sink import LogSink
from reconciler.adapters.events.nats_sink import NATSSink
from reconciler.adapters.events.open_sink import open_sink
from reconciler.domain.events.delivery import DELIVERED, DeliveryOutcome
from reconciler.domain.events.envelope import OutboxEvent, channel
from reconciler.ports.store.outbox import EventSink
from tests.fakes.consumer import consuming
from tests.fakes.events import RecordingSink, event

pytestmark = pytest.mark.contract

SOURCE = "/test"
TOKEN = "tok3n-of-the-sink"
DEADLINE_S = 60.0


class Stand:
    """A sink and what it handed over, as JSON of structured CloudEvents."""

    def __init__(self, sink: EventSink, taken: Callable[[], Sequence[bytes]]) -> None:
        self.sink = sink
        self.taken = taken

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(item) for item in self.taken()]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[NATS, Supervisor]]:
    with tempfile.TemporaryDirectory(prefix="broker-nats-") as folder:
        supervisor = Supervisor(Path(folder))
        server = NATS(Path(folder), token=TOKEN)
        try:
            server.start(supervisor, report=print)
            yield server, supervisor
        finally:
            supervisor.stop()


@asynccontextmanager
async def _recorded() -> AsyncIterator[Stand]:
    sink = RecordingSink()
    yield Stand(sink, lambda: [cloudevents.structured(item, SOURCE) for item in sink.taken])


@asynccontextmanager
async def _logged() -> AsyncIterator[Stand]:
    stream = io.BytesIO()
    yield Stand(LogSink(stream, source=SOURCE), lambda: stream.getvalue().splitlines())


@asynccontextmanager
async def _posted(*, binary: bool) -> AsyncIterator[Stand]:
    async with consuming() as (consumer, url):
        sink = HTTPSink(url, source=SOURCE, binary=binary)
        yield Stand(sink, consumer.taken)
        await sink.close()


@asynccontextmanager
async def _streamed(server: NATS) -> AsyncIterator[Stand]:
    sink = NATSSink(server.url, source=SOURCE, stream="events")
    client = await nats.connect(server.url)
    taken: list[bytes] = []
    subscription = await client.subscribe("plexsphere.events.>")

    async def listen() -> None:
        async for message in subscription.messages:
            taken.append(message.data)  # noqa: PERF401 - seen while it goes on

    listening = asyncio.create_task(listen())
    await client.flush()
    yield Stand(sink, lambda: taken)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await client.close()
    await sink.close()


@pytest.fixture(
    params=[
        "recording",
        "log",
        pytest.param("structured", marks=pytest.mark.integration),
        pytest.param("binary", marks=pytest.mark.integration),
        pytest.param("nats", marks=pytest.mark.integration),
    ]
)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Stand]:
    match request.param:
        case "recording":
            made = _recorded()
        case "log":
            made = _logged()
        case "nats":
            made = _streamed(request.getfixturevalue("server")[0])
        case mode:
            made = _posted(binary=mode == "binary")
    async with made as stand:
        yield stand


async def _arrived(stand: Stand, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(DEADLINE_S):
        while len(stand.taken()) < count:  # noqa: ASYNC110 - a consumer of its own has it
            await asyncio.sleep(0.01)
    return stand.events()


async def test_an_event_arrives_whole(stand: Stand) -> None:
    told = event(uuid4(), 3, payload={"Reason": 'q"uota\n äöü \U0001f600', "Count": 7})

    delivery = await stand.sink.publish(told)

    assert delivery == DELIVERED
    [got] = await _arrived(stand, 1)
    assert got == json.loads(cloudevents.structured(told, SOURCE))


async def test_one_aggregates_events_arrive_in_their_order(stand: Stand) -> None:
    aggregate = uuid4()

    for number in range(1, 21):
        assert await stand.sink.publish(event(aggregate, number)) == DELIVERED

    got = await _arrived(stand, 20)
    assert [int(item["sequence"]) for item in got] == list(range(1, 21))


async def test_several_aggregates_may_be_published_at_once(stand: Stand) -> None:
    events = [event(uuid4(), 1) for _ in range(50)]

    deliveries = await asyncio.gather(*(stand.sink.publish(item) for item in events))

    assert set(deliveries) == {DELIVERED}
    got = await _arrived(stand, 50)
    assert {item["id"] for item in got} == {str(item.id) for item in events}


async def test_a_repetition_has_the_same_id(stand: Stand) -> None:
    told = event(uuid4(), 1)
    await stand.sink.publish(told)

    assert await stand.sink.publish(told) == DELIVERED

    assert {item["id"] for item in await _arrived(stand, 1)} == {str(told.id)}


async def test_closing_twice_is_closing(stand: Stand) -> None:
    await stand.sink.close()
    await stand.sink.close()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, DeliveryOutcome.DELIVERED),
        (202, DeliveryOutcome.DELIVERED),
        (400, DeliveryOutcome.REFUSED),
        (413, DeliveryOutcome.REFUSED),
        (422, DeliveryOutcome.REFUSED),
        (307, DeliveryOutcome.FAILED),
        (401, DeliveryOutcome.FAILED),
        (403, DeliveryOutcome.FAILED),
        (404, DeliveryOutcome.FAILED),
        (408, DeliveryOutcome.FAILED),
        (425, DeliveryOutcome.FAILED),
        (429, DeliveryOutcome.FAILED),
        (500, DeliveryOutcome.FAILED),
        (503, DeliveryOutcome.FAILED),
    ],
)
async def test_a_status_says_whom_it_speaks_of(status: int, outcome: DeliveryOutcome) -> None:
    async with consuming(f"key={TOKEN}") as (consumer, url):
        consumer.status = status
        consumer.headers = {"Location": f"{url}&elsewhere"}
        sink = HTTPSink(url, source=SOURCE)
        delivery = await sink.publish(event(uuid4(), 1))
        await sink.close()

    assert delivery.outcome is outcome
    assert len(consumer.got) == 1, "a redirect is not followed"
    assert delivery.error == ("" if outcome is DeliveryOutcome.DELIVERED else f"HTTP {status}")


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["http", "nats"])
async def test_nobody_there_is_a_failure_that_names_no_credential(
    scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    sink = open_sink(f"{scheme}://user:{TOKEN}@127.0.0.1:{free_port()}/{TOKEN}", source=SOURCE)

    deliveries = await asyncio.gather(*(sink.publish(event(uuid4(), 1)) for _ in range(64)))
    await sink.close()

    assert {item.outcome for item in deliveries} == {DeliveryOutcome.FAILED}
    assert TOKEN not in "".join(item.error for item in deliveries)
    assert TOKEN not in caplog.text


@pytest.mark.integration
async def test_a_wrong_credential_is_a_failure(server: tuple[NATS, Supervisor]) -> None:
    sink = open_sink(server[0].url.replace(TOKEN, "another"), source=SOURCE)

    delivery = await sink.publish(event(uuid4(), 1))
    await sink.close()

    assert delivery.outcome is DeliveryOutcome.FAILED
    assert "another" not in delivery.error


@pytest.mark.integration
async def test_a_missing_stream_is_a_failure(server: tuple[NATS, Supervisor]) -> None:
    sink = NATSSink(server[0].url, source=SOURCE)
    client = await nats.connect(server[0].url)
    for name in [item.config.name for item in await client.jetstream().streams_info()]:
        await client.jetstream().delete_stream(str(name))
    await client.close()

    delivery = await sink.publish(event(uuid4(), 1))
    await sink.close()

    assert (delivery.outcome, delivery.error) == (DeliveryOutcome.FAILED, "NoStreamResponseError")


@pytest.mark.integration
async def test_an_event_too_large_for_the_server_is_refused(
    server: tuple[NATS, Supervisor],
) -> None:
    sink = NATSSink(server[0].url, source=SOURCE, stream="events")

    delivery = await sink.publish(event(uuid4(), 1, payload={"Reason": "x" * 2_000_000}))
    await sink.close()

    assert (delivery.outcome, delivery.error) == (DeliveryOutcome.REFUSED, "MaxPayloadError")


@pytest.mark.integration
async def test_a_stream_stores_each_event_once(server: tuple[NATS, Supervisor]) -> None:
    told = event(uuid4(), 1)
    sink = NATSSink(server[0].url, source=SOURCE, stream="events")
    for _ in range(3):
        assert await sink.publish(told) == DELIVERED
    await sink.close()

    assert await _stored(server[0].url, told) == 1


@pytest.mark.integration
async def test_a_server_that_was_away_is_found_again(server: tuple[NATS, Supervisor]) -> None:
    real, supervisor = server
    sink = NATSSink(real.url, source=SOURCE, stream="events")
    assert await sink.publish(event(uuid4(), 1)) == DELIVERED
    real.stop()
    told = event(uuid4(), 1)
    try:
        lost = await sink.publish(told)
    finally:
        real.again(supervisor)

    async with asyncio.timeout(DEADLINE_S):
        while await sink.publish(told) != DELIVERED:  # noqa: ASYNC110 - a server signals nothing
            await asyncio.sleep(0.1)
    await sink.close()

    assert lost.outcome is DeliveryOutcome.FAILED
    assert await _stored(real.url, told) == 1


async def _stored(url: str, told: OutboxEvent) -> int:
    client = await nats.connect(url)
    subscription = await client.jetstream().pull_subscribe(channel(told))
    messages = await subscription.fetch(10, timeout=2)
    await client.close()
    return len(messages)
