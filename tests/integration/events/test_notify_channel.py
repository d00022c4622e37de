"""Rings between processes, and what happens when a connection breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from reconciler.adapters.postgres.outbox import notify_channel as bells
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from tests.integration.events.stage import until

pytestmark = pytest.mark.integration

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'plexsphere-broker-bell' AND datname = current_database()"
)


@asynccontextmanager
async def _hung(bell: NotifyChannel) -> AsyncIterator[None]:
    task = asyncio.create_task(bell.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _bell(dsn: str) -> tuple[NotifyChannel, list[str | None]]:
    heard: list[str | None] = []
    bell = NotifyChannel(dsn)
    bell.listen("events", heard.append)
    return bell, heard


async def test_a_ring_is_heard_here_at_once_and_elsewhere_soon(dsn: str) -> None:
    (mine, here), (theirs, there) = _bell(dsn), _bell(dsn)
    async with _hung(mine), _hung(theirs):
        await until(lambda: here == [None] and there == [None])

        mine.ring("events", "a")

        assert here == [None, "a"]
        await until(lambda: there == [None, "a"])


async def test_other_topics_are_not_heard(dsn: str) -> None:
    (mine, here), (theirs, there) = _bell(dsn), _bell(dsn)
    async with _hung(mine), _hung(theirs):
        await until(lambda: here == [None] and there == [None])

        mine.ring("registered", "x")
        mine.ring("events", "last")
        await until(lambda: "last" in there)

    assert there == [None, "last"]


async def test_many_rings_are_few_notifications(dsn: str) -> None:
    (mine, here), (theirs, there) = _bell(dsn), _bell(dsn)
    async with _hung(mine), _hung(theirs):
        await until(lambda: here == [None] and there == [None])

        for _ in range(1000):
            mine.ring("events")
        mine.ring("events", "last")
        await until(lambda: "last" in there)

    assert len(there) <= 4


async def test_a_listener_that_was_cut_off_looks_at_everything_and_hears_again(
    dsn: str, pool: asyncpg.Pool
) -> None:
    """Fault 31: the server ends the session that listens."""
    (mine, here), (theirs, there) = _bell(dsn), _bell(dsn)
    async with _hung(mine), _hung(theirs):
        await until(lambda: here == [None] and there == [None])

        await pool.execute(TERMINATE)
        await until(lambda: there.count(None) == 2 and here.count(None) == 2)
        mine.ring("events", "after")

        await until(lambda: "after" in there)


async def test_what_is_rung_while_deaf_is_rung_later(dsn: str, pool: asyncpg.Pool) -> None:
    (mine, _), (theirs, there) = _bell(dsn), _bell(dsn)
    mine.ring("events", "early")
    async with _hung(theirs):
        await until(lambda: there == [None])
        async with _hung(mine):
            await until(lambda: "early" in there)


async def test_a_long_detail_is_left_out(dsn: str) -> None:
    mine, here = _bell(dsn)

    mine.ring("events", "x" * (bells.DETAIL_MAX + 1))

    assert here == [""]
