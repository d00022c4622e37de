"""`broker orphans`: prints the findings of the orphan sweep.

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
"""One connection attempt; an operator waits."""


@click.command()
@click.option(
    "--management-cluster",
    "slug",
    envvar="PLEXSPHERE_MANAGEMENT_CLUSTER",
    default="local",
    show_default=True,
    help="Slug of the management cluster.",
)
def orphans(slug: str) -> None:
    """Print the open findings of the orphan sweep, as stored in PLEXSPHERE_DSN.

    Neither this command nor the sweep deletes anything. Exits with status 0 in any case.
    """
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    found = store.run("list orphans", _standing(dsn, slug))
    for item in found:
        orphan = item.orphan
        click.echo(f"{orphan.finding.value}  {orphan.subject}")
        click.echo(f"    {orphan.detail}; since {item.found_at:%Y-%m-%dT%H:%M:%SZ}")
        click.echo(f"    {REMEDY[orphan.finding]}")
    if not found:
        click.echo("no orphans found")


async def _standing(dsn: str, slug: str) -> Sequence[FoundObjects]:
    with reaching():
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    try:
        return await standing(connection, ids.management_cluster_id(slug))
    finally:
        await connection.close()
