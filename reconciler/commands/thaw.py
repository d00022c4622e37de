"""`broker thaw`: accepts the observed state of a frozen management cluster.

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
"""One connection attempt; an operator waits."""

REASON_MAX: Final = 512
"""Longest reason in characters, as the table has it: a sentence and a ticket."""


@click.command()
@click.option(
    "--management-cluster",
    "slug",
    envvar="PLEXSPHERE_MANAGEMENT_CLUSTER",
    default="local",
    show_default=True,
    help="Slug of the frozen management cluster.",
)
@click.option("--reason", required=True, help="Why the observed state is correct; recorded.")
def thaw(slug: str, reason: str) -> None:
    """Accept the observed state of a management cluster whose controller is frozen.

    For ten minutes, missing records count as deleted: their nodes are deregistered and their
    machines deleted. Run it only after you understand the cause in the log and /metrics. Exits
    with status 1 if the management cluster is not stored.
    """
    text = reason.strip()
    if not (1 <= len(text) <= REASON_MAX and text.isprintable()):
        message = f"must be one printable line of 1 to {REASON_MAX} characters"
        raise click.BadParameter(message, param_hint="--reason")
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    if not store.run("thaw", _declare(dsn, slug, text)):
        click.echo(f"broker: cannot thaw: management cluster {slug!r} is not stored", err=True)
        raise SystemExit(store.EXIT_FAILED)
    click.echo(f"observed state of management cluster {slug!r} is accepted for ten minutes")


async def _declare(dsn: str, slug: str, reason: str) -> bool:
    with reaching():
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    try:
        return await declared(connection, ids.management_cluster_id(slug), reason)
    finally:
        await connection.close()
