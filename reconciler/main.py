"""The `broker` command: flags and environment in, exit codes out.

Argument parsing, signals, the one line per fault on stderr.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import click

from function.__version__ import __version__
from function.operating import memory_dumps
from reconciler.adapters import process_limits
from reconciler.app.queue.work_queue import describe
from reconciler.commands.catalog import catalog
from reconciler.commands.diagnosis import why
from reconciler.commands.events import events
from reconciler.commands.migrate import migrate
from reconciler.commands.nodes import nodes
from reconciler.commands.openapi import openapi
from reconciler.commands.orphans import orphans
from reconciler.commands.render import render
from reconciler.commands.restored import restored
from reconciler.commands.retain import retain
from reconciler.commands.store import EXIT_FAILED, load, refuse
from reconciler.commands.thaw import thaw
from reconciler.settings import Settings, SettingsError
from reconciler.wiring import serving

_log = logging.getLogger(__name__)


@click.group()
@click.version_option(__version__, prog_name="broker")
def cli() -> None:
    """The provisioning broker's reconciler."""


cli.add_command(render)
cli.add_command(catalog)
cli.add_command(openapi)
cli.add_command(migrate)
cli.add_command(retain)
cli.add_command(restored)
cli.add_command(events)
cli.add_command(orphans)
cli.add_command(nodes)
cli.add_command(thaw)
cli.add_command(why)


@cli.command()
def serve() -> None:
    """Reconcile records and serve nodes until stopped; settings come from the environment."""
    memory_dumps.forbid()
    process_limits.make_room_for_files()
    settings = load(Settings)
    logging.basicConfig(
        level=settings.log_level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    try:
        asyncio.run(_serve(settings))
    except SettingsError as error:
        refuse(error)
    except Exception as error:  # noqa: BLE001 - the last edge: one line, and a status
        _log.debug("serve_failed", exc_info=error)
        click.echo(f"broker: cannot serve: {describe(error)}", err=True)
        sys.exit(EXIT_FAILED)


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    stopping = asyncio.create_task(stop.wait())
    opening = asyncio.create_task(_until_stopped(settings, stop))
    await asyncio.wait({stopping, opening}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not opening.done():
        opening.cancel()
    await asyncio.gather(opening, return_exceptions=stop.is_set())


async def _until_stopped(settings: Settings, stop: asyncio.Event) -> None:
    async with serving(settings) as work:
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({stopping, work}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if work.done():
            work.result()


if __name__ == "__main__":
    cli()
