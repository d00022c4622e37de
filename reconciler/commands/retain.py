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
    """Remove what has been over for as long as PLEXSPHERE_RETENTION_* says.

    `broker serve` does it every hour; this is for a job of its own, and for looking. Beside
    PLEXSPHERE_DSN and those three no variable is read.
    """
    settings = store.load(RetentionSettings)
    removed = store.run("remove what is over", _pass(settings))
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
