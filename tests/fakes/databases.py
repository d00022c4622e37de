"""Real databases for tests: one server and one migrated template per run, a clone per test."""

from __future__ import annotations

import asyncio
import atexit
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from dev.postgres import EXISTING_SERVER, Postgres
from reconciler.adapters.postgres.connection import migrate


@cache
def server() -> Postgres:
    """Start the run's server; it ends with the process."""
    folder = tempfile.TemporaryDirectory(prefix="broker-tests-")
    Path(folder.name).chmod(0o711)
    postgres = Postgres(Path(folder.name))
    postgres.start()
    atexit.register(folder.cleanup)
    atexit.register(postgres.stop)
    return postgres


@cache
def _template() -> str:
    name = _fresh_name("template")
    dsn = server().create_database(name)
    # A thread of its own, because an asynchronous fixture may be asking.
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(asyncio.run, migrate.migrate(dsn)).result()
    if EXISTING_SERVER in os.environ:
        atexit.register(server().drop_database, name)
    return name


@contextmanager
def empty_database() -> Iterator[str]:
    """Yield the DSN of a database without any schema of ours."""
    yield from _database(None)


@contextmanager
def migrated_database() -> Iterator[str]:
    """Yield the DSN of a database at the newest revision."""
    yield from _database(_template())


def _database(template: str | None) -> Iterator[str]:
    name = _fresh_name("test")
    dsn = server().create_database(name, template=template)
    try:
        yield dsn
    finally:
        server().drop_database(name)


def _fresh_name(kind: str) -> str:
    return f"broker_{kind}_{uuid4().hex}"
