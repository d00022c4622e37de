"""`broker retain`: one pass of retention, now.

Opening the store and telling what went. Only `reconciler.main` imports it. Source:
docs/operations/retention.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from reconciler.adapters.postgres.aggregates.retention import PostgresRetention
from reconciler.adapters.postgres.connection.migrate import check
from reconciler.adapters.postgres.connection.pool import open_pool, reaching
from reconciler.app.housekeeping.retention import Retention
from reconciler.commands import store
from reconciler.ports.store.retention import Remains
from reconciler.settings.store import RetentionSettings


@click.command()
def retain() -> None:
    """Delete rows that are past their PLEXSPHERE_RETENTION_*, once.

    `broker serve` does this every hour; use this command in a separate job, or to see the counts.
    It reads no variable but PLEXSPHERE_DSN and those three.
    """
    settings = store.load(RetentionSettings)
    removed = store.run("apply retention", _pass(settings))
    for remains, count in removed.items():
        click.echo(f"{remains.value}: {count} removed")


async def _pass(settings: RetentionSettings) -> Mapping[Remains, int]:
    dsn = settings.dsn.get_secret_value()
    with reaching():
        await check(dsn)
        pool = await open_pool(dsn, size_max=1)
    try:
        return await Retention(PostgresRetention(pool), settings.keep).make_pass()
    finally:
        await pool.close()
