"""Shared by commands on the database: settings in, one line per error, an exit status.

Reading their settings, running them, how they fail. Only `reconciler.main` and modules of
this package import it.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import sys
from collections.abc import Coroutine
from typing import Any, Final, NoReturn, TypeVar

import asyncpg
import click

from reconciler.adapters.postgres.connection.migrate import MigrationError
from reconciler.adapters.postgres.connection.pool import StoreError
from reconciler.app.queue.work_queue import describe
from reconciler.settings import SettingsError
from reconciler.settings.environment import Environment

EXIT_FAILED: Final = 1
EXIT_SETTINGS: Final = 2
"""Wrong settings (kinds.md, "Settings of `broker serve`")."""

_Model = TypeVar("_Model", bound=Environment)
_Answer = TypeVar("_Answer")


def load(model: type[_Model]) -> _Model:
    """Return a command's settings, or end the program with a line for each that is wrong."""
    try:
        return model.load(os.environ)
    except SettingsError as error:
        refuse(error)


def refuse(error: SettingsError) -> NoReturn:
    """End the program with a line for each setting that is wrong."""
    for fault in error.faults:
        click.echo(f"broker: {fault}", err=True)
    sys.exit(EXIT_SETTINGS)


def run(verb: str, work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """Return what the work returns, or end the program with a line on why it could not.

    Args:
        verb: What cannot be done then, such as `migrate`.
        work: What is done on the database.
    """
    try:
        return asyncio.run(work)
    except (MigrationError, StoreError, asyncpg.PostgresError, OSError, TimeoutError) as error:
        click.echo(f"broker: cannot {verb}: {describe(error)}", err=True)
        sys.exit(EXIT_FAILED)


def actor() -> str:
    """Name who runs this, as far as the operating system knows."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"[:200]
