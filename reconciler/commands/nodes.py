"""`broker nodes`: nodes that nobody else takes out of the mesh any more.

Flags and what is printed. Only `reconciler.main` imports it. Source: docs/operators.md;
docs/decisions/0024.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import asyncpg
import click

from reconciler.adapters.postgres.connection.pool import reaching
from reconciler.adapters.postgres.registration import operator_nodes
from reconciler.commands import store
from reconciler.domain.aggregate import ids
from reconciler.ports.operators import REASON_MAX, NodeDeregistration
from reconciler.settings.store import StoreSettings

CONNECT_TIMEOUT_S: Final = 10.0
"""One connection attempt; a person waits."""

_SAID: Final = {
    NodeDeregistration.OUT: "the node is out of the mesh; its address comes back after its rest",
    NodeDeregistration.GONE: "the node was out of the mesh before",
}
_REFUSED: Final = {
    NodeDeregistration.ABSENT: "no node of this id is stored",
    NodeDeregistration.ALIVE: "its resource is alive: delete it, and the node leaves in order",
}


@click.group()
def nodes() -> None:
    """Mend the mesh where a resource left its node behind."""


@nodes.command()
@click.argument("node", type=click.UUID)
@click.option("--reason", required=True, help="Why; it is kept, with who ran this.")
def deregister(node: UUID, *, reason: str) -> None:
    """Take out a node whose resource is Deleted or was given up by force-release.

    Its mesh address is free again ten minutes later. Exit status 1 when it was not taken out;
    one that was out before is success.
    """
    text = reason.strip()
    if not (1 <= len(text) <= REASON_MAX and text.isprintable()):
        message = f"must be one printable line of 1 to {REASON_MAX} characters"
        raise click.BadParameter(message, param_hint="--reason")
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    outcome = store.run("deregister node", _deregister(dsn, ids.NodeID(node), text))
    if outcome in _REFUSED:
        click.echo(f"broker: cannot deregister node: {_REFUSED[outcome]}", err=True)
        raise SystemExit(store.EXIT_FAILED)
    click.echo(_SAID[outcome])


async def _deregister(dsn: str, node: ids.NodeID, reason: str) -> NodeDeregistration:
    with reaching():
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    try:
        return await operator_nodes.deregister(
            connection, node, project=None, by=store.actor(), reason=reason
        )
    finally:
        await connection.close()
