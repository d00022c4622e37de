"""What `broker restored` does to a store that came out of a backup."""

from __future__ import annotations

import asyncio
from typing import Final, LiteralString

import asyncpg
import pytest
from click.testing import CliRunner, Result

from reconciler.adapters.postgres.aggregates import restoration
from reconciler.adapters.postgres.connection import migrate
from reconciler.commands.store import EXIT_SETTINGS
from reconciler.domain.identity.denial import Denial
from reconciler.main import cli
from reconciler.ports.registration import Registered
from tests.contract.worlds import World

pytestmark = pytest.mark.integration

AUDITED: Final[LiteralString] = "SELECT actor, action FROM plexsphere.operator_audit"


async def _restored(dsn: str | None, *flags: str) -> Result:
    runner = CliRunner(env={"PLEXSPHERE_DSN": dsn})
    return await asyncio.to_thread(runner.invoke, cli, ["restored", *flags])


async def test_every_unspent_token_is_revoked_and_audited_and_no_other(
    world: World, pool: asyncpg.Pool, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoration, "BATCH", 2)
    used, *unused = [await world.resource(f"web-{number}") for number in range(4)]
    its_token = await world.token(used)
    await world.register(used, its_token)
    tokens = [await world.token(resource) for resource in unused]
    second = await world.token(unused[0], 2)

    result = await _restored(dsn, "--reason", "OPS-26")

    answers = [
        await world.register(resource, token)
        for resource, token in [*zip(unused, tokens, strict=True), (unused[0], second)]
    ]
    audited = await pool.fetch(AUDITED)
    assert result.output == "4 tokens revoked\n"
    assert [isinstance(answer, Denial) and answer.code for answer in answers] == [
        "token_revoked"
    ] * 4
    assert isinstance(await world.register(used, its_token), Registered)
    assert len(audited) == 4
    assert {row["action"] for row in audited} == {"revoke-token"}
    assert all(row["actor"].startswith("broker restored (") for row in audited)
    assert all(row["actor"].endswith("): OPS-26") for row in audited)


async def test_a_second_time_revokes_nothing(world: World, dsn: str) -> None:
    await world.token(await world.resource())
    await _restored(dsn, "--reason", "first")

    assert (await _restored(dsn, "--reason", "second")).output == "0 tokens revoked\n"


async def test_a_backup_of_an_earlier_version_is_brought_up(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target="0027")

    result = await _restored(empty_dsn, "--reason", "OPS-26")

    assert result.exit_code == 0
    assert await migrate.current(empty_dsn) == migrate.head()


async def test_without_a_reason_nothing_is_done(dsn: str) -> None:
    result = await _restored(dsn)

    assert "Missing option '--reason'" in result.output
    assert result.exit_code == EXIT_SETTINGS
