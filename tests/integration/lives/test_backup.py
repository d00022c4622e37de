"""A database is lost and comes back from its backup, as docs/operations/backup.md says."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from pathlib import Path
from typing import Final, LiteralString
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp
import asyncpg
import pytest
from click.testing import CliRunner

from dev.controlplane import ControlPlane
from dev.postgres import installation
from dev.stack import ROOT
from reconciler.main import cli
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents
from tests.integration.load.ledger import own_server
from tests.integration.load.stage import (
    STEP_S,
    Broker,
    cluster_settings,
    furnished,
    stalled,
)

PAGE: Final = ROOT / "docs" / "operations" / "backup.md"
PROGRAM_TIMEOUT_S: Final = 60.0

REUSED: Final[LiteralString] = """
SELECT count(*) FROM plexsphere.bootstrap_tokens AS token
WHERE consumed_at IS NOT NULL AND EXISTS (
    SELECT FROM plexsphere.operator_audit WHERE bootstrap_token_id = token.id
)
"""
AUDITED: Final[LiteralString] = "SELECT actor FROM plexsphere.operator_audit"

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def _command(program: str, dump: Path) -> list[str]:
    """Return a program's arguments as the page has them, the database left out."""
    lines = (line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines())
    words = shlex.split(next(line for line in lines if line.startswith(f"{program} ")))
    found = [str(dump) if word == "broker.dump" else word for word in words]
    if "--dbname" in found:
        at = found.index("--dbname")
        del found[at : at + 2]
    return found


def _run(command: list[str], dsn: str) -> None:
    """Run one of Postgres's own programs on a database; the password is not in its arguments."""
    program, *arguments = command
    parts = urlsplit(dsn)
    public = parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1))
    subprocess.run(
        [str(installation() / "bin" / program), *arguments, "--dbname", urlunsplit(public)],
        env={**os.environ, "PGPASSWORD": unquote(parts.password or "")},
        check=True,
        capture_output=True,
        timeout=PROGRAM_TIMEOUT_S,
    )


async def _fetch(dsn: str, statement: LiteralString) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        rows: list[asyncpg.Record] = await connection.fetch(statement)
    finally:
        await connection.close()
    return rows


async def test_f26_a_restored_store_goes_on_and_no_token_is_used_twice(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    backup = tmp_path / "broker.dump"
    with own_server(tmp_path / "first") as lost, own_server(tmp_path / "second") as fresh:
        first, second = lost.create_database("broker"), fresh.create_database("broker")
        settings = cluster_settings(control_plane)
        before = Broker(tmp_path / "before", {**settings, "PLEXSPHERE_DSN": first})
        after = Broker(tmp_path / "after", {**settings, "PLEXSPHERE_DSN": second})
        async with (
            furnished(control_plane, before) as stage,
            aiohttp.ClientSession(before.node_url) as at_first,
            aiohttp.ClientSession(after.node_url) as at_second,
        ):
            steady = await Life.begun(stage, "steady")
            await steady.registers(Agents(at_first))
            late = await Life.begun(stage, "late")
            _run(_command("pg_dump", backup), first)
            # What the backup does not know: one registered, another was declared.
            await late.registers(Agents(at_first))
            unknown = await Life.begun(stage, "unknown")
            await asyncio.to_thread(before.kill)
            await asyncio.to_thread(lost.stop)

            _run(_command("pg_restore", backup), second)
            runner = CliRunner(env={"PLEXSPHERE_DSN": second})
            _, *arguments = _command("broker restored", backup)
            told = await asyncio.to_thread(runner.invoke, cli, arguments)
            await asyncio.to_thread(after.start)

            agents = Agents(at_second)
            is_known = await agents.reports(steady.reply)
            refusals = [await _refused(at_second, life.body) for life in (late, unknown)]
            await stage.until(late.record, lambda status: stalled(status) is not None, "the cause")
            await stage.until(
                unknown.record,
                lambda status: status.get("phase") == "Enrolling",
                "its aggregate again",
            )
            handle = unknown.status["xrName"]
            for life in (steady, late, unknown):
                await life.ends()
            fresh_one = await Life.begun(stage, "fresh")
            await fresh_one.registers(agents)
            after.assert_running()
            await asyncio.to_thread(after.stop)
        reused = (await _fetch(second, REUSED))[0][0]
        actors = {row["actor"] for row in await _fetch(second, AUDITED)}

    assert told.output == "1 tokens revoked\n"
    assert is_known
    assert refusals == [403, 403]
    assert handle == unknown.handle
    assert reused == 0
    assert len(actors) == 1
    assert actors.pop().endswith(": OPS-26: disk lost")


async def _refused(session: aiohttp.ClientSession, body: bytes) -> int:
    headers = {"Content-Type": "application/json"}
    async with asyncio.timeout(STEP_S):
        async with session.post("/v1/register", data=body, headers=headers) as response:
            return response.status
