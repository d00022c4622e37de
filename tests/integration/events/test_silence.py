"""Connections that nobody ended and that nothing comes through any more."""

from __future__ import annotations

from uuid import uuid4

import asyncpg
import pytest

from reconciler.adapters.postgres.outbox import notify_channel as bells
from reconciler.adapters.postgres.outbox import relay_store
from reconciler.wiring.relay import EVENTS
from tests.fakes.events import RecordingSink
from tests.integration.events.silence import way_to
from tests.integration.events.stage import CLEAR, append, at_work, until
from tests.integration.events.test_notify_channel import _bell, _hung

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "PROOF_S", 0.3)
    monkeypatch.setattr(bells, "RETRY_S", 0.05)
    monkeypatch.setattr(relay_store, "STATEMENT_TIMEOUT_S", 0.5)


async def test_a_listener_whose_connection_says_nothing_looks_at_everything_and_hears_again(
    dsn: str,
) -> None:
    """Fault 31."""
    async with way_to(dsn) as (way, through):
        (mine, here), (theirs, there) = _bell(dsn), _bell(through)
        async with _hung(mine), _hung(theirs):
            await until(lambda: here == [None] and there == [None])

            assert way.silence() == 1
            mine.ring("events", "lost")
            await until(lambda: there == [None, None])
            mine.ring("events", "after")

            await until(lambda: there == [None, None, "after"])


async def test_what_is_rung_into_a_silent_connection_is_rung_again(dsn: str) -> None:
    async with way_to(dsn) as (way, through):
        (mine, here), (theirs, there) = _bell(through), _bell(dsn)
        async with _hung(mine), _hung(theirs):
            await until(lambda: here == [None] and there == [None])

            assert way.silence() == 1
            mine.ring("events", "kept")

            await until(lambda: "kept" in there)


async def test_a_relay_whose_connections_say_nothing_goes_on(dsn: str, pool: asyncpg.Pool) -> None:
    await pool.execute(CLEAR)
    sink = RecordingSink()
    async with way_to(dsn) as (way, through):
        ringing, listening = _bell(dsn)[0], _bell(through)[0]
        async with at_work(through, sink) as running, _hung(ringing), _hung(listening):
            listening.listen(EVENTS, lambda _: running.relay.wake())
            await append(pool, uuid4(), 1)
            running.relay.wake()
            await until(lambda: len(sink.taken) == 1)

            assert way.silence() == 2
            await append(pool, uuid4(), 1)
            ringing.ring(EVENTS)

            await until(lambda: len(sink.taken) == 2)

    assert [item.sequence for item in sink.taken] == [1, 1]
