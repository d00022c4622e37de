"""`broker migrate`: the schema of a database, up, back, or only looked at.

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
@click.option(
    "--down", is_flag=True, help="Go back to the revision of --to; what is newer is lost."
)
@click.option("--check", is_flag=True, help="Change nothing; fail unless this program fits.")
def migrate(revision: str | None, *, down: bool, check: bool) -> None:
    """Bring the schema of PLEXSPHERE_DSN up to this version; repeating it changes nothing.

    No other variable is read. A schema that a later program brought further stays as it is.
    """
    if check and (revision or down):
        message = "--check goes with neither --to nor --down"
        raise click.UsageError(message)
    if down and not revision:
        message = "--down needs --to"
        raise click.UsageError(message)
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    if check:
        reached: str | None = store.run("use schema", schema.check(dsn))
    elif down:
        reached = store.run("migrate", schema.downgrade(dsn, str(revision)))
    else:
        reached = store.run("migrate", schema.migrate(dsn, target=revision or "head"))
    click.echo(f"schema is at {reached}" if reached else "schema is empty")
