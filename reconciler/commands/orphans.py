"""`broker orphans`: what the last sweep found that nothing looks after any more.

Its flags and what it prints. Only `reconciler.main` imports it. Source:
docs/runbooks/deletion.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg
import click

from reconciler.adapters.postgres.aggregates.orphan_ledger import standing
from reconciler.adapters.postgres.connection.pool import reaching
from reconciler.commands import store
from reconciler.domain.aggregate import ids
from reconciler.domain.teardown.orphans import REMEDY
from reconciler.ports.cluster.orphans import FoundObjects
from reconciler.settings.store import StoreSettings

CONNECT_TIMEOUT_S: Final = 10.0
"""One connection attempt; a person waits."""


@click.command()
@click.option(
    "--management-cluster",
    "slug",
    envvar="PLEXSPHERE_MANAGEMENT_CLUSTER",
    default="local",
    show_default=True,
    help="Slug of the cluster that is asked about.",
)
def orphans(slug: str) -> None:
    """Print what the orphan sweep of PLEXSPHERE_DSN's leader found and nobody has mended.

    Nothing is deleted, by this or by the sweep. Exit status 0, whatever there is.
    """
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    found = store.run("list orphans", _standing(dsn, slug))
    for item in found:
        orphan = item.orphan
        click.echo(f"{orphan.finding.value}  {orphan.subject}")
        click.echo(f"    {orphan.detail}; since {item.found_at:%Y-%m-%dT%H:%M:%SZ}")
        click.echo(f"    {REMEDY[orphan.finding]}")
    if not found:
        click.echo("nothing is left over")


async def _standing(dsn: str, slug: str) -> Sequence[FoundObjects]:
    with reaching():
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    try:
        return await standing(connection, ids.management_cluster_id(slug))
    finally:
        await connection.close()
