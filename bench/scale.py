"""The driver beside thousands of nodes: memory, cold start, cost, reaction, and rest.

What is measured of a real `broker serve` on a real API server and Postgres, and what the
figures say. There is no Crossplane, no kubelet and, while it is measured, no controller
manager; etcd and Postgres do not sync to disk (`dev`), so that a shared disk's moods are
not the figure. Source: issue "Scale".
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, LiteralString

import aiohttp
import asyncpg
import click
import psutil
from prometheus_client.parser import text_string_to_metric_families

from bench import report
from bench.changes import Changes
from bench.crowd import Crowd, Member
from bench.echo import READY
from bench.scale_targets import BARE, OURS, Reaction, Row, targets
from dev.controlplane import ControlPlane
from dev.postgres import Postgres
from dev.process import Program
from dev.stack import ROOT
from dev.supervisor import Supervisor
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.app.controller.sweep import IN_TURN
from tests.integration.load.agents import eventually, until
from tests.integration.load.stage import Broker

RESULTS: Final = Path(__file__).with_name("results")
PER_PROJECT: Final = 100
"""Records of one Project."""
COLD_TIMEOUT_S: Final = 600.0
"""Until everything is worked off: ten times the target."""
ECHO_S: Final = 60.0
"""Until the bare one watches."""
RATES: Final = (20.0, 50.0)
"""Changes a second; the last one is judged."""
SWEEP_S: Final = 35.0
"""A sweep, and what it asked for."""

LEASES: Final = frozenset({"driver_leases"})
"""Renewed every two seconds, whatever there is to drive."""

_WRITES: LiteralString = """
SELECT relname, n_tup_ins + n_tup_upd + n_tup_del AS writes FROM pg_stat_user_tables
WHERE schemaname = 'plexsphere'
"""


@click.command()
@click.option(
    "--records", "sizes", multiple=True, type=int, default=(1000, 5000, 10_000), show_default=True
)
@click.option("--rest", "rest_s", default=300.0, show_default=True, help="Seconds at rest.")
@click.option("--changes", "changes_s", default=20.0, show_default=True, help="Seconds of changes.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a target is missed.")
@click.pass_context
def scale(
    context: click.Context,
    *,
    sizes: tuple[int, ...],
    rest_s: float,
    changes_s: float,
    strict: bool,
) -> None:
    """Drive thousands of nodes that are Ready."""
    rows: list[Row] = []
    for count in sizes:
        rows.append(_measured(count, rest_s=rest_s, changes_s=changes_s))
        click.echo(json.dumps(asdict(rows[-1])))
    found = targets(rows)
    click.echo(report.verdicts(found))
    body = {"machine": report.machine(None), "rows": rows, "targets": found}
    click.echo(f"written: {report.save(RESULTS, 'scale', body).name}")
    if strict and any(each.met is False for each in found):
        context.exit(1)


def _measured(count: int, *, rest_s: float, changes_s: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
        Path(folder).chmod(0o711)
        with Postgres(Path(folder)) as postgres, ControlPlane(Path(folder) / "cluster") as plane:
            dsn = postgres.create_database("bench_scale")
            settings = {"PLEXSPHERE_DSN": dsn, "KUBECONFIG": str(plane.kubeconfig)}
            broker = Broker(Path(folder) / "broker", settings)
            crowd = Crowd(plane, dsn, broker)
            crowd.furnish()
            run = _Run(plane, dsn, broker, folder=Path(folder))
            return asyncio.run(run.measure(crowd, count, rest_s=rest_s, changes_s=changes_s))


class _Run:
    """One number of records."""

    def __init__(self, plane: ControlPlane, dsn: str, broker: Broker, *, folder: Path) -> None:
        self._folder = folder
        self._plane = plane
        self._dsn = dsn
        self._broker = broker

    async def measure(self, crowd: Crowd, count: int, *, rest_s: float, changes_s: float) -> Row:
        started = time.monotonic()
        projects = max(1, count // PER_PROJECT)
        async with crowd.made(count=count, projects=projects) as members:
            click.echo(f"{count} records made in {time.monotonic() - started:.0f} s")
            started = time.monotonic()
            await asyncio.to_thread(partial(self._broker.start, ready_s=COLD_TIMEOUT_S))
            process = psutil.Process(self._broker.pid)
            await self._settled(count)
            cold_s = time.monotonic() - started
            cold_cpu_s = _cpu_s(process)
            click.echo(f"all rest after {cold_s:.1f} s, {cold_cpu_s:.1f} s of a processor")
            # Holds in namespaces that are new to the store are remembered by the next sweeps.
            await asyncio.sleep(SWEEP_S * (1 + projects // IN_TURN))
            rest = await self._rest(process, rest_s)
            click.echo(f"at rest: {json.dumps(rest)}")
            reactions = [await self._changes(OURS, members, r, changes_s) for r in RATES]
            resident_mib = _peak_mib(process.pid)
            await asyncio.to_thread(self._broker.stop)
            async with self._echo():
                reactions += [await self._changes(BARE, members, r, changes_s) for r in RATES]
            return Row(
                records=count,
                cold_s=cold_s,
                cold_cpu_s=cold_cpu_s,
                resident_mib=resident_mib,
                reactions=reactions,
                **rest,
            )

    async def _settled(self, count: int) -> None:
        """Wait until every record rests."""
        async with aiohttp.ClientSession(self._broker.operator_url) as session:

            async def settled() -> bool:
                return await _gauge(session, "plexsphere_records_settled") >= count

            await eventually(settled, timeout_s=COLD_TIMEOUT_S, what="every record rests")

    async def _rest(self, process: psutil.Process, seconds: float) -> dict[str, Any]:
        connection = await asyncpg.connect(self._dsn)
        try:
            before, started = await self._written(connection), time.monotonic()
            cpu = _cpu_s(process)
            await asyncio.sleep(seconds)
            lasted = time.monotonic() - started
            used = (_cpu_s(process) - cpu) / lasted
            after = await self._written(connection)
        finally:
            await connection.close()
        tables = {
            table: after.rows.get(table, 0) - before.rows.get(table, 0)
            for table in after.rows
            if table not in LEASES
        }
        return {
            "rest_s": lasted,
            "rest_cpu": used,
            "rest_writes": {table: count for table, count in tables.items() if count},
            "rest_api_writes": after.api - before.api,
            "rest_wal_bytes": after.wal - before.wal,
        }

    async def _written(self, connection: asyncpg.Connection) -> _Written:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await asyncio.sleep(1.5)  # other sessions report their counts once a second
        rows = {row["relname"]: row["writes"] for row in await connection.fetch(_WRITES)}
        wal = await connection.fetchval("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
        log = self._plane.audit_log
        lines = () if log is None else log.read_text(encoding="utf-8").splitlines()
        return _Written(rows=rows, wal=int(wal), api=sum(_is_ours(line) for line in lines))

    @asynccontextmanager
    async def _echo(self) -> AsyncIterator[None]:
        """Let the bare one answer inside the block."""
        with Supervisor(self._folder / "echo") as supervisor:
            argv = [sys.executable, "-m", "bench.echo", str(self._plane.kubeconfig)]
            supervisor.start(Program(name="echo", argv=argv, cwd=ROOT))
            log = supervisor.logs / "echo.log"
            await until(lambda: READY in log.read_text(), timeout_s=ECHO_S, what="the bare echo")
            yield

    async def _changes(
        self, who: str, members: list[Member], rate: float, seconds: float
    ) -> Reaction:
        """Change declarations; return how long the answers took to be seen."""
        client = await open_client(self._plane.kubeconfig)
        watcher = await open_client(self._plane.kubeconfig)
        changes = Changes(client, watcher, f"{who.replace(' ', '-')}-{rate:g}")
        try:
            found = sorted(await changes.run(members, rate=rate, seconds=seconds))
        finally:
            await client.close()
            await watcher.close()
        click.echo(f"{who}: {len(found)} changes at {rate:g}/s, {changes.unanswered} unanswered")
        return Reaction(
            who=who,
            rate=rate,
            p50_s=report.percentile(found, 50),
            p99_s=report.percentile(found, 99),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    rows: Mapping[str, int]
    wal: int
    api: int


async def _gauge(session: aiohttp.ClientSession, name: str) -> float:
    async with session.get("/metrics") as response:
        text = await response.text()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                return float(sample.value)
    return -1.0


def _is_ours(line: str) -> bool:
    """Tell whether an audit line is a write to an object, and no question about rights."""
    entry = json.loads(line)
    group = (entry.get("objectRef") or {}).get("apiGroup", "")
    return group not in ("authorization.k8s.io", "authentication.k8s.io")


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak_mib(pid: int) -> float:
    """Return the most that a process ever held."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    message = f"cannot read the memory of process {pid}"
    raise ProcessLookupError(message)
