"""`broker restored`: revokes the unspent tokens of a store restored from a backup.

Its flags and what it prints. Only `reconciler.main` imports it. Source:
docs/operations/backup.md.
"""

from __future__ import annotations

import getpass

import click

from reconciler.adapters.postgres.aggregates.restoration import revoke_unspent
from reconciler.adapters.postgres.connection.migrate import migrate
from reconciler.adapters.postgres.connection.pool import open_pool, reaching
from reconciler.commands import store
from reconciler.settings.store import StoreSettings


@click.command()
@click.option("--reason", required=True, help="Reason for the audit, for example a ticket.")
def restored(reason: str) -> None:
    """Prepare a PLEXSPHERE_DSN that was restored from a backup; run it before `broker serve`.

    Migrates the schema to this version and revokes every token that is unused in the backup: a
    machine may have used it since. Running it again changes nothing.
    """
    settings = store.load(StoreSettings)
    actor = f"broker restored ({_user()}): {reason}"
    revoked = store.run("revoke tokens", _revoked(settings, actor))
    click.echo(f"{revoked} tokens revoked")


async def _revoked(settings: StoreSettings, actor: str) -> int:
    dsn = settings.dsn.get_secret_value()
    with reaching():
        await migrate(dsn)
        pool = await open_pool(dsn, size_max=1)
    try:
        return await revoke_unspent(pool, actor=actor)
    finally:
        await pool.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's uid need not have a name.
        return "unknown"
