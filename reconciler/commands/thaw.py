"""`broker thaw`: a person's word that what a frozen controller sees is true.

Its flags and what it prints. Only `reconciler.main` imports it. Source:
docs/operations/freeze.md.
"""

from __future__ import annotations

from typing import Final

import asyncpg
import click

from reconciler.adapters.postgres.aggregates.counts import thaw as declared
from reconciler.adapters.postgres.connection.pool import reaching
from reconciler.commands import store
from reconciler.domain.aggregate import ids
from reconciler.settings.store import StoreSettings

CONNECT_TIMEOUT_S: Final = 10.0
"""One connection attempt; a person waits."""

REASON_MAX: Final = 512
"""Longest reason in characters, as the table has it: a sentence and a ticket."""


@click.command()
@click.option(
    "--management-cluster",
    "slug",
    envvar="PLEXSPHERE_MANAGEMENT_CLUSTER",
    default="local",
    show_default=True,
    help="Slug of the cluster that is frozen.",
)
@click.option("--reason", required=True, help="Why what is seen is true; it is kept.")
def thaw(slug: str, reason: str) -> None:
    """Declare that what the frozen controller of a management cluster sees is true.

    For ten minutes records that vanished are believed to be gone: their nodes leave the mesh,
    and their machines are deleted. Say it only after the cause in the log and /metrics is
    understood. Exit status 1 when no such cluster is stored.
    """
    text = reason.strip()
    if not (1 <= len(text) <= REASON_MAX and text.isprintable()):
        message = f"must be one printable line of 1 to {REASON_MAX} characters"
        raise click.BadParameter(message, param_hint="--reason")
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    if not store.run("thaw", _declare(dsn, slug, text)):
        click.echo(f"broker: cannot thaw: management cluster {slug!r} is not stored", err=True)
        raise SystemExit(store.EXIT_FAILED)
    click.echo(f"management cluster {slug!r} is as it seems, for ten minutes")


async def _declare(dsn: str, slug: str, reason: str) -> bool:
    with reaching():
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    try:
        return await declared(connection, ids.management_cluster_id(slug), reason)
    finally:
        await connection.close()
