"""`broker events`: what people see of events and do to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from uuid import UUID, uuid4

import asyncpg
import pytest
from click.testing import CliRunner

from reconciler.adapters.postgres.outbox import event_desk
from reconciler.adapters.postgres.outbox.event_desk import opened
from reconciler.commands.events import events as command
from reconciler.domain.events.delivery import DELIVERED, Delivery, DeliveryOutcome
from tests.fakes.events import RecordingSink
from tests.integration.events.stage import CLEAR, append, relay

pytestmark = pytest.mark.integration

REFUSED = Delivery(outcome=DeliveryOutcome.REFUSED, error="HTTP 422")
DEADLINE_S = 60.0
FOLLOWED_S = 20.0
AUDIT = "SELECT actor, action, reason, event_id FROM plexsphere.event_audit ORDER BY sequence"


@pytest.fixture(autouse=True)
async def _nothing_waits(pool: asyncpg.Pool) -> None:
    await pool.execute(CLEAR)


async def _broker(dsn: str, *arguments: str) -> tuple[int, str, str]:
    env = {"PLEXSPHERE_DSN": dsn, "PLEXSPHERE_EVENTS_SOURCE": "/here"}
    # The command runs a loop of its own, which needs a thread of its own.
    answer = await asyncio.to_thread(CliRunner().invoke, command, arguments, env=env)
    return answer.exit_code, answer.stdout, answer.stderr


async def _parked(dsn: str, pool: asyncpg.Pool) -> tuple[UUID, Sequence[UUID]]:
    """Let the second of three events be parked."""
    aggregate = uuid4()
    events = await append(pool, aggregate, 1, 2, 3)
    sink = RecordingSink(lambda item: REFUSED if item.sequence == 2 else DELIVERED)
    async with relay(dsn, sink) as running:
        while await running.relay.once():
            pass
    return aggregate, events


async def _published(dsn: str) -> list[UUID]:
    sink = RecordingSink()
    async with relay(dsn, sink) as running:
        while await running.relay.once():
            pass
    return [item.id for item in sink.taken]


async def test_events_are_listed_with_what_became_of_them(dsn: str, pool: asyncpg.Pool) -> None:
    aggregate, events = await _parked(dsn, pool)

    status, out, err = await _broker(dsn, "list", "--aggregate", str(aggregate))

    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[1] for line in lines] == ["waiting", "parked", "published"]
    assert f"Node/{aggregate}#2 id={events[1]} attempts=1 error=HTTP 422" in lines[1]
    _, parked, _ = await _broker(dsn, "list", "--parked")
    assert parked.splitlines() == [lines[1]]
    _, waiting, _ = await _broker(dsn, "list", "--waiting", "--type", "identity.NodeRegistered")
    assert waiting.splitlines() == lines[:2]


async def test_a_parked_event_is_replayed_and_what_waits_behind_it_follows(
    dsn: str, pool: asyncpg.Pool
) -> None:
    _, events = await _parked(dsn, pool)

    status, out, err = await _broker(dsn, "replay", "--parked", "--reason", "consumer mended")

    assert (status, out, err) == (0, "1 events will be published\n", "")
    assert await _published(dsn) == list(events[1:])
    [entry] = await pool.fetch(AUDIT)
    assert (entry["action"], entry["reason"]) == ("replay", "consumer mended")
    assert (entry["event_id"], "@" in entry["actor"]) == (events[1], True)


async def test_a_skipped_event_is_not_published_and_what_waits_behind_it_is(
    dsn: str, pool: asyncpg.Pool
) -> None:
    _, events = await _parked(dsn, pool)

    status, out, _ = await _broker(dsn, "skip", str(events[1]), "--reason", "nobody needs it")

    assert (status, out) == (0, "the event will not be published\n")
    assert await _published(dsn) == [events[2]]
    _, listed, _ = await _broker(dsn, "list")
    assert [line.split()[1] for line in listed.splitlines()] == [
        "published",
        "skipped",
        "published",
    ]
    [entry] = await pool.fetch(AUDIT)
    assert (entry["action"], entry["event_id"]) == ("skip", events[1])


async def test_what_does_not_wait_cannot_be_skipped(dsn: str, pool: asyncpg.Pool) -> None:
    _, events = await _parked(dsn, pool)

    status, out, err = await _broker(dsn, "skip", str(events[0]), "--reason", "no")

    assert (status, out, err) == (1, "", "Error: no waiting event has this id\n")
    assert not await pool.fetch(AUDIT)


async def test_published_events_are_replayed_with_their_ids_and_in_their_order(
    dsn: str, pool: asyncpg.Pool
) -> None:
    aggregate = uuid4()
    events = await append(pool, aggregate, 1, 2, 3, 4)
    other = await append(pool, uuid4(), 1)
    assert set(await _published(dsn)) == {*events, *other}

    _, out, _ = await _broker(
        dsn, "replay", "--aggregate", str(aggregate), "--from", "2", "--reason", "lost them"
    )

    assert out == "3 events will be published\n"
    assert await _published(dsn) == list(events[1:])


async def test_one_published_event_is_replayed(dsn: str, pool: asyncpg.Pool) -> None:
    events = await append(pool, uuid4(), 1, 2)
    await _published(dsn)

    await _broker(dsn, "replay", "--event", str(events[0]), "--reason", "again")

    assert await _published(dsn) == [events[0]]


@pytest.mark.parametrize("arguments", [[], ["--parked", "--event", str(uuid4())]])
async def test_a_replay_says_which(dsn: str, arguments: list[str]) -> None:
    status, _, err = await _broker(dsn, "replay", *arguments, "--reason", "x")

    assert status == 2
    assert "set exactly one of --event, --aggregate and --parked" in err


async def test_the_audit_cannot_be_changed(dsn: str, pool: asyncpg.Pool) -> None:
    _, events = await _parked(dsn, pool)
    await _broker(dsn, "skip", str(events[1]), "--reason", "x")

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await pool.execute("DELETE FROM plexsphere.event_audit")


async def test_the_tail_prints_cloudevents_from_the_start(dsn: str, pool: asyncpg.Pool) -> None:
    events = await append(pool, uuid4(), *range(1, 6))
    await _published(dsn)

    status, out, err = await _broker(dsn, "tail", "--from-start", "--no-follow")

    assert (status, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    assert [item["id"] for item in told] == [str(event) for event in events]
    assert {item["source"] for item in told} == {"/here"}


async def test_the_tail_follows_and_passes_nothing_over_that_commits_late(
    dsn: str, pool: asyncpg.Pool
) -> None:
    await append(pool, uuid4(), 1)
    got: list[UUID] = []
    async with opened(dsn, actor="test") as desk, pool.acquire() as slow:
        transaction = slow.transaction()
        await transaction.start()
        [late] = await append(slow, uuid4(), 1)
        following = asyncio.create_task(_follow(dsn, got))
        async with asyncio.timeout(DEADLINE_S):
            while not got:
                [last] = await append(pool, uuid4(), 1)
                await asyncio.sleep(0.1)
            await transaction.commit()
            while late not in got:  # noqa: ASYNC110 - a table signals nothing
                await asyncio.sleep(0.05)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        every = [event.id async for event in desk.follow(from_start=True, wait=False)]

    assert len(got) == len(set(got))
    assert last in every
    assert late in every


async def test_the_tail_follows_behind_an_id_of_a_clock_that_is_far_ahead(
    dsn: str, pool: asyncpg.Pool
) -> None:
    [ahead] = await append(pool, uuid4(), 1)
    far = UUID(int=ahead.int + (86_400_000 << 80))
    await pool.execute("UPDATE plexsphere.outbox_events SET id = $2 WHERE id = $1", ahead, far)
    got: list[UUID] = []
    following = asyncio.create_task(_follow(dsn, got))
    async with asyncio.timeout(FOLLOWED_S):
        seen: set[UUID] = set()
        # The second may be the first that is new to it; the third comes after a turn of its loop.
        while len(got) < 3:
            seen.update(await append(pool, uuid4(), 1))
            await asyncio.sleep(event_desk.FOLLOW_POLL_S / 2)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert set(got) <= seen
    assert len(got) == len(set(got))


async def _follow(dsn: str, got: list[UUID]) -> None:
    async with opened(dsn, actor="test") as desk:
        async for event in desk.follow(from_start=False, wait=True):
            got.append(event.id)  # noqa: PERF401 - seen while it goes on


async def test_a_database_that_is_not_there_is_one_line(dsn: str) -> None:
    status, out, err = await _broker(f"{dsn}_gone", "list")

    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith("broker: cannot list events: ")
    assert "does not exist" in err
