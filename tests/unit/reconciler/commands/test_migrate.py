"""`broker migrate` as people call it: what it reads, prints and exits with."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from reconciler.adapters.postgres.connection import migrate
from reconciler.commands.store import EXIT_FAILED, EXIT_SETTINGS
from reconciler.main import cli
from tests.fakes.databases import empty_database

HEAD = str(migrate.head())


@pytest.fixture
def empty_dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


def _migrate(*flags: str, **environ: str | None) -> Result:
    nothing: dict[str, str | None] = dict.fromkeys(
        name for name in os.environ if name.startswith("PLEXSPHERE_")
    )
    return CliRunner().invoke(cli, ["migrate", *flags], env={**nothing, **environ})


@pytest.mark.integration
def test_the_dsn_is_all_it_needs(empty_dsn: str) -> None:
    result = _migrate(PLEXSPHERE_DSN=empty_dsn)

    assert result.output == f"schema is at {HEAD}\n"
    assert result.exit_code == 0


@pytest.mark.integration
def test_it_stops_where_it_is_told_and_goes_back(empty_dsn: str) -> None:
    up = _migrate("--to", "0028", PLEXSPHERE_DSN=empty_dsn)
    back = _migrate("--down", "--to", "0026", PLEXSPHERE_DSN=empty_dsn)
    empty = _migrate("--down", "--to", "base", PLEXSPHERE_DSN=empty_dsn)

    assert up.output == "schema is at 0028\n"
    assert back.output == "schema is at 0026\n"
    assert empty.output == "schema is empty\n"


@pytest.mark.integration
def test_a_check_fails_until_the_schema_is_this_versions(empty_dsn: str) -> None:
    before = _migrate("--check", PLEXSPHERE_DSN=empty_dsn)
    _migrate("--to", "0027", PLEXSPHERE_DSN=empty_dsn)
    older = _migrate("--check", PLEXSPHERE_DSN=empty_dsn)
    _migrate(PLEXSPHERE_DSN=empty_dsn)
    after = _migrate("--check", PLEXSPHERE_DSN=empty_dsn)

    assert (before.exit_code, older.exit_code, after.exit_code) == (EXIT_FAILED, EXIT_FAILED, 0)
    (line,) = older.output.splitlines()
    assert line.startswith("broker: cannot use schema: MigrationError: cannot use schema: it is at")
    assert after.output == f"schema is at {HEAD}\n"


@pytest.mark.integration
def test_a_revision_that_is_none_is_one_line(empty_dsn: str) -> None:
    result = _migrate("--to", "0999", PLEXSPHERE_DSN=empty_dsn)

    (line,) = result.output.splitlines()
    assert "no path to revision 0999" in line
    assert result.exit_code == EXIT_FAILED


def test_without_a_dsn_it_names_the_variable() -> None:
    result = _migrate(PLEXSPHERE_DSN=None)

    assert result.output == "broker: PLEXSPHERE_DSN: must be set\n"
    assert result.exit_code == EXIT_SETTINGS


@pytest.mark.parametrize("flags", [("--check", "--to", "0027"), ("--check", "--down"), ("--down",)])
def test_flags_that_contradict_are_a_wrong_call(flags: tuple[str, ...]) -> None:
    result = _migrate(*flags, PLEXSPHERE_DSN="postgresql://nobody@192.0.2.1/none")

    assert "Error: --" in result.output
    assert result.exit_code == 2
