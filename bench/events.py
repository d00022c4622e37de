"""Events per second, in order, and how late they are: `python -m bench events`.

Filling an outbox, starting relays on it, and what the figures say. Relays and the HTTP
consumer are processes of their own, Postgres and NATS are real. Source: issue "Scale".
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, LiteralString
from urllib.request import urlopen
from uuid import UUID, uuid4

import asyncpg
import click
from uuid_utils.compat import uuid7

from bench import report
from dev.nats import NATS
from dev.postgres import Postgres
from dev.supervisor import Supervisor
from reconciler.adapters.postgres.connection import migrate
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.adapters.postgres.outbox.notify_channel import NotifyChannel
from reconciler.domain.events.kinds import AggregateType, IdentityEventType
from reconciler.wiring.relay import EVENTS

RESULTS: Final = Path(__file__).with_name("results")
RATE_MIN: Final = 5_000
AGGREGATES: Final = 2_000
LAG_RATE: Final = 200
"""Events a second while lag is measured: ten thousand nodes that come within a minute."""
LAG_SECONDS: Final = 20
LAG_MAX_S: Final = 1.0
STOP_TIMEOUT_S: Final = 60.0
DRAIN_TIMEOUT_S: Final = 600.0

_APPEND: LiteralString = """
INSERT INTO plexsphere.outbox_events
    (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp())
"""
_WAITING: LiteralString = "SELECT count(*) FROM plexsphere.outbox_events WHERE published_at IS NULL"
_CLEAR: LiteralString = "TRUNCATE plexsphere.outbox_events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One sink with a number of relays; times in milliseconds, of the relays' processors too."""

    sink: str
    relays: int
    events: int
    events_per_s: float
    cpu_us_per_event: float
    lag_p50_ms: float
    lag_p99_ms: float


@click.command()
@click.option("--count", default=50_000, show_default=True, help="Events of a turn.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a target is missed.")
@click.pass_context
def events(context: click.Context, *, count: int, strict: bool) -> None:
    """Measure the relay of events."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-events-") as folder, ExitStack() as stack:
        Path(folder).chmod(0o711)
        postgres = stack.enter_context(Postgres(Path(folder)))
        dsn = postgres.create_database("bench")
        asyncio.run(migrate.migrate(dsn))
        nats_url = stack.enter_context(_nats(Path(folder) / "nats"))
        for relays in (1, 2):
            for sink in ("log", "http", "nats"):
                with _sink(sink, nats_url) as url:
                    rows.append(asyncio.run(_turn(dsn, (sink, url), relays=relays, count=count)))
                each = rows[-1]
                click.echo(
                    f"{each.sink:<5}{each.relays} relays {each.events_per_s:8.0f} events/s "
                    f"{each.cpu_us_per_event:6.0f} µs CPU/event "
                    f"lag p50 {each.lag_p50_ms:6.1f} ms p99 {each.lag_p99_ms:6.1f} ms"
                )
    found = _targets(rows)
    click.echo(report.verdicts(found))
    body = {"machine": report.machine(None), "rows": rows, "targets": found}
    click.echo(f"written: {report.save(RESULTS, 'events', body).name}")
    if strict and any(each.met is False for each in found):
        context.exit(1)


def _targets(rows: Sequence[Row]) -> list[report.Target]:
    best = max(rows, key=lambda each: each.events_per_s)
    latest = max(each.lag_p99_ms for each in rows)
    slow = max(each.events_per_s for each in rows if each.sink == "nats")
    return [
        report.Target(
            name=f"at least {RATE_MIN} events a second in order",
            found=f"{best.events_per_s:.0f} ({best.sink}, {best.relays} relays); nats {slow:.0f}",
            met=best.events_per_s >= RATE_MIN,
        ),
        report.Target(
            name=f"lag p99 under {LAG_MAX_S:g} s at {LAG_RATE} events a second",
            found=f"{latest:.0f} ms at worst",
            met=latest <= 1000 * LAG_MAX_S,
        ),
    ]


async def _turn(dsn: str, sink: tuple[str, str], *, relays: int, count: int) -> Row:
    pool = await open_pool(dsn)
    try:
        await pool.execute(_CLEAR)
        await _fill(pool, count)
        async with pool.acquire() as connection:
            await connection.execute("VACUUM ANALYZE plexsphere.outbox_events")
        with _relays(dsn, sink[1], relays) as drain:
            started = time.monotonic()
            await _drained(pool)
            rate = count / (time.monotonic() - started)
        with _relays(dsn, sink[1], relays) as lags:
            await _drip(dsn, pool)
            await _drained(pool)
    finally:
        await pool.close()
    if sink[0] == "http":
        _check_order(sink[1])
    found = sorted(lag for each in lags for lag in each["lags"])
    return Row(
        sink=sink[0],
        relays=relays,
        events=count,
        events_per_s=rate,
        cpu_us_per_event=1e6 * sum(each["cpu_s"] for each in drain) / count,
        lag_p50_ms=1000 * report.percentile(found, 50),
        lag_p99_ms=1000 * report.percentile(found, 99),
    )


async def _fill(pool: asyncpg.Pool, count: int) -> None:
    """Append events as they come in life: many aggregates, a few of each, one after the other."""
    aggregates = [uuid4() for _ in range(AGGREGATES)]
    rows = [_event(aggregates[each % AGGREGATES], each // AGGREGATES + 1) for each in range(count)]
    async with pool.acquire() as connection:
        for start in range(0, count, 5_000):
            await connection.executemany(_APPEND, rows[start : start + 5_000])


async def _drip(dsn: str, pool: asyncpg.Pool) -> None:
    """Append events at a rate, and ring as the broker does."""
    bell = NotifyChannel(dsn)
    ringing = asyncio.create_task(bell.run())
    loop = asyncio.get_running_loop()
    started = loop.time()
    for each in range(LAG_RATE * LAG_SECONDS):
        await asyncio.sleep(max(0.0, started + each / LAG_RATE - loop.time()))
        await pool.execute(_APPEND, *_event(uuid4(), 1))
        bell.ring(EVENTS)
    ringing.cancel()
    await asyncio.gather(ringing, return_exceptions=True)


def _event(aggregate: UUID, sequence: int) -> tuple[Any, ...]:
    event_id = uuid7()
    payload = {
        "EventID": str(event_id),
        "OccurredAt": "2026-11-22T00:00:00.000000Z",
        "NodeID": str(aggregate),
        **{name: str(event_id) for name in ("ProjectID", "DomainID", "ProvisionedResourceID")},
        "BootstrapTokenID": str(event_id),
        "MeshIP": "100.64.0.7",
    }
    kind = (AggregateType.NODE.value, IdentityEventType.NODE_REGISTERED.value)
    return event_id, kind[0], aggregate, sequence, kind[1], payload


async def _drained(pool: asyncpg.Pool) -> None:
    async with asyncio.timeout(DRAIN_TIMEOUT_S):
        while await pool.fetchval(_WAITING):  # noqa: ASYNC110 - a table signals nothing
            await asyncio.sleep(0.05)


@contextmanager
def _relays(dsn: str, sink: str, count: int) -> Iterator[list[dict[str, Any]]]:
    """Run relays for the block; behind it the list holds what each took."""
    found: list[dict[str, Any]] = []
    argv = [sys.executable, "-m", "bench.event_relay", dsn, sink]
    started = [
        subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]  # fmt: skip
    try:
        for each in started:
            _line(each.stderr)
        for each in started:
            print("go", file=each.stdin, flush=True)
        yield found
        for each in started:
            _, last = each.communicate(timeout=STOP_TIMEOUT_S)
            found.append(json.loads(last.splitlines()[-1]))
    finally:
        for each in started:
            each.kill()
            each.wait()


@contextmanager
def _sink(name: str, nats_url: str) -> Iterator[str]:
    if name != "http":
        yield "log:" if name == "log" else nats_url
        return
    argv = [sys.executable, "-m", "bench.event_consumer"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as each:
        try:
            yield _line(each.stdout)
        finally:
            each.communicate(timeout=STOP_TIMEOUT_S)


@contextmanager
def _nats(folder: Path) -> Iterator[str]:
    supervisor = Supervisor(folder)
    server = NATS(folder)
    try:
        server.start(supervisor, report=click.echo)
        yield server.url
    finally:
        supervisor.stop()


def _check_order(url: str) -> None:
    with urlopen(url, timeout=STOP_TIMEOUT_S) as answer:  # noqa: S310 - our own consumer
        told = json.load(answer)
    if told["disorder"]:
        message = f"{told['disorder']} of {told['count']} events came out of order"
        raise RuntimeError(message)


def _line(stream: IO[str] | None) -> str:
    line = "" if stream is None else stream.readline().strip()
    if not line:
        message = "cannot measure: a process of ours ended at once"
        raise RuntimeError(message)
    return line
