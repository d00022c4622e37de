"""The Postgres server as a host process."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from dev.postgres import EXISTING_SERVER, Postgres
from dev.process import ProcessError

pytestmark = pytest.mark.integration

DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with Postgres(tmp_path_factory.mktemp("postgres")) as postgres:
        yield postgres


async def value(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_it_is_a_release_with_uuidv7(server: Postgres) -> None:
    assert await value(server.dsn, "SELECT uuid_extract_version(uuidv7())") == 7


async def test_a_database_is_copied_from_its_template(server: Postgres) -> None:
    template = server.create_database("template")
    await value(template, "CREATE TABLE fact AS SELECT 42 AS answer")

    copy = server.create_database("copy", template="template")

    assert await value(copy, "SELECT answer FROM fact") == 42


async def test_dropping_a_database_twice_is_harmless(server: Postgres) -> None:
    dsn = server.create_database("brief")

    server.drop_database("brief")
    server.drop_database("brief")

    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await value(dsn, "SELECT 1")


def test_what_the_server_refuses_is_reported_without_the_password(server: Postgres) -> None:
    server.create_database("taken")

    with pytest.raises(ProcessError, match='"taken" already exists') as caught:
        server.create_database("taken")

    assert server.dsn.split(":")[2].split("@")[0] not in str(caught.value)


def test_a_server_of_the_environment_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXISTING_SERVER, "postgresql://someone@db.invalid/x")

    with Postgres(tmp_path) as postgres:
        assert postgres.dsn == "postgresql://someone@db.invalid/x"

    assert list(tmp_path.iterdir()) == []


def test_a_killed_owner_leaves_no_server_and_the_next_start_removes_its_data(
    tmp_path: Path,
) -> None:
    code = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from dev.postgres import Postgres
        with Postgres(Path({str(tmp_path)!r})):
            print("up", flush=True)
            time.sleep(600)
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        family = psutil.Process(owner.pid).children(recursive=True)

        owner.send_signal(signal.SIGKILL)

    assert len(family) > 1
    _, alive = psutil.wait_procs(family, timeout=DEADLINE_S)
    assert alive == []

    with Postgres(tmp_path):
        pass
    assert not (tmp_path / "postgres-elsewhere").is_symlink()
