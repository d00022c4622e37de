"""Registrations per second, ours beside the least a Python handler can do.

The client, the turns, and what the figures say. Both servers are processes of their own
over one Postgres; client, bodies and connections are the same; turns alternate. A ratio is
taken within a round, and the median over rounds counts. Source: issue "Races and load".
"""

from __future__ import annotations

import asyncio
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import asyncpg
import click

from bench import bare_registration, report
from dev import registrations
from dev.postgres import Postgres
from reconciler.adapters.postgres.connection import migrate

CLIENTS: Final = (1, 16)
PROJECT_NODES: Final = 20
"""Nodes of a Project at the end: the reply lists its others."""
RATIO_MIN: Final = 0.6
STOP_TIMEOUT_S: Final = 10.0
REQUEST_TIMEOUT_S: Final = 30.0
RESULTS: Final = Path(__file__).with_name("results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender at one number of clients; `ratio` is its throughput by the bare one's."""

    contender: str
    clients: int
    calls_per_s: float
    p50_ms: float
    p99_ms: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one contender did in one turn."""

    calls_per_s: float
    latencies_s: list[float]


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Turns of each contender.")
@click.option("--count", default=400, show_default=True, help="Registrations of a turn.")
@click.option("--strict", is_flag=True, help="Exit with 1 when the target is missed.")
@click.pass_context
def registration(context: click.Context, *, rounds: int, count: int, strict: bool) -> None:
    """Compare registrations with a bare handler's."""
    with tempfile.TemporaryDirectory(prefix="bench-registration-") as folder:
        Path(folder).chmod(0o711)
        with Postgres(Path(folder)) as postgres:
            dsn = postgres.create_database("bench_registration")
            with _server("bare", dsn) as bare, _server("ours", dsn) as ours:
                rows = asyncio.run(_compare(dsn, {"bare": bare, "ours": ours}, rounds, count))
    targets = [
        report.Target(
            name=f"at least {RATIO_MIN:g} of a bare handler: {row.clients} clients",
            found=f"{row.ratio:.2f} ({row.calls_per_s:.0f}/s, p99 {row.p99_ms:.1f} ms)",
            met=row.ratio >= RATIO_MIN,
        )
        for row in rows
        if row.contender == "ours"
    ]
    for row in rows:
        click.echo(
            f"{row.contender:5} {row.clients:3} clients {row.calls_per_s:6.0f}/s "
            f"p50 {row.p50_ms:6.2f} ms  p99 {row.p99_ms:6.2f} ms  ratio {row.ratio:.2f}"
        )
    click.echo(f"SHA-256 of a token: {_hash_us():.2f} us")
    click.echo(report.verdicts(targets))
    body = {"rows": rows, "targets": targets, "hash_us": _hash_us()}
    click.echo(f"written: {report.save(RESULTS, 'registration', body).name}")
    if strict and not all(each.met for each in targets):
        context.exit(1)


@contextmanager
def _server(kind: str, dsn: str) -> Iterator[str]:
    argv = [sys.executable, "-m", "bench.registration_server", kind, dsn]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None:
            message = "cannot start server: it has no output"
            raise RuntimeError(message)
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=STOP_TIMEOUT_S)


async def _compare(dsn: str, urls: dict[str, str], rounds: int, count: int) -> list[Row]:
    await migrate.migrate(dsn)
    connection = await asyncpg.connect(dsn)
    await connection.execute(bare_registration.TABLES)
    rows = []
    for clients in CLIENTS:
        turns: dict[str, list[Turn]] = {name: [] for name in urls}
        for number in range(rounds + 1):
            machines = await registrations.seed(
                dsn, count=count, projects=max(1, count // PROJECT_NODES)
            )
            await connection.executemany(
                "INSERT INTO bare_tokens VALUES ($1, NULL)",
                [(each.token_digest,) for each in machines],
            )
            for name, url in urls.items():
                done = await _turn(url, [each.body() for each in machines], clients)
                # The first round is for connections, plans and caches.
                if number > 0:
                    turns[name].append(done)
            # What autovacuum does within a minute of the first rows; before them it would tell
            # the planner that the tables are empty.
            if number == 0:
                await connection.execute("VACUUM ANALYZE")
        rows += [_row(name, clients, turns) for name in urls]
    await connection.close()
    return rows


async def _turn(url: str, bodies: list[bytes], clients: int) -> Turn:
    latencies: list[float] = []
    left = iter(bodies)
    headers = {"Content-Type": "application/json"}
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    async with aiohttp.ClientSession(url, headers=headers, timeout=timeout) as session:

        async def client() -> None:
            for body in left:
                begun = time.perf_counter()
                async with session.post("/v1/register", data=body) as response:
                    await response.read()
                    response.raise_for_status()
                latencies.append(time.perf_counter() - begun)

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
        took = time.perf_counter() - begun
    return Turn(calls_per_s=len(bodies) / took, latencies_s=latencies)


def _row(name: str, clients: int, turns: dict[str, list[Turn]]) -> Row:
    mine = turns[name]
    latencies = sorted(each for turn in mine for each in turn.latencies_s)
    pairs = zip(mine, turns["bare"], strict=True)
    return Row(
        contender=name,
        clients=clients,
        calls_per_s=statistics.median(turn.calls_per_s for turn in mine),
        p50_ms=1000 * report.percentile(latencies, 50),
        p99_ms=1000 * report.percentile(latencies, 99),
        ratio=statistics.median(turn.calls_per_s / bare.calls_per_s for turn, bare in pairs),
    )


def _hash_us() -> float:
    text = b"x" * 80
    count = 10_000
    begun = time.perf_counter()
    for _ in range(count):
        hashlib.sha256(text).digest()
    return (time.perf_counter() - begun) / count * 1_000_000
