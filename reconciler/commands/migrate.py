"""`broker migrate`: upgrades, downgrades or checks the schema of a database.

Its flags and what it prints. Only `reconciler.main` imports it. Source:
docs/operations/upgrade.md.
"""

from __future__ import annotations

import click

from reconciler.adapters.postgres.connection import migrate as schema
from reconciler.commands import store
from reconciler.settings.store import StoreSettings


@click.command()
@click.option("--to", "revision", metavar="REV", help="Stop at this revision, such as 0028.")
@click.option("--down", is_flag=True, help="Downgrade to the revision of --to; newer data is lost.")
@click.option("--check", is_flag=True, help="Change nothing; fail unless the schema fits.")
def migrate(revision: str | None, *, down: bool, check: bool) -> None:
    """Migrate the schema of PLEXSPHERE_DSN to this version; running it again changes nothing.

    It reads no other variable. It does not change a schema that a later version has migrated.
    """
    if check and (revision or down):
        message = "--check cannot be used with --to or --down"
        raise click.UsageError(message)
    if down and not revision:
        message = "--down requires --to"
        raise click.UsageError(message)
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    if check:
        reached: str | None = store.run("use schema", schema.check(dsn))
    elif down:
        reached = store.run("migrate", schema.downgrade(dsn, str(revision)))
    else:
        reached = store.run("migrate", schema.migrate(dsn, target=revision or "head"))
    click.echo(f"schema is at {reached}" if reached else "schema is empty")
