"""`broker nodes`: deregisters nodes that a deleted resource left in the mesh.

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
"""One connection attempt; an operator waits."""

_SAID: Final = {
    NodeDeregistration.OUT: "the node is deregistered; its mesh address is free in ten minutes",
    NodeDeregistration.GONE: "the node was already deregistered",
}
_REFUSED: Final = {
    NodeDeregistration.ABSENT: "no node with this id is stored",
    NodeDeregistration.ALIVE: "its resource exists: delete the resource to deregister the node",
}


@click.group()
def nodes() -> None:
    """Manage nodes that a deleted resource left in the mesh."""


@nodes.command()
@click.argument("node", type=click.UUID)
@click.option("--reason", required=True, help="Reason, recorded with the user.")
def deregister(node: UUID, *, reason: str) -> None:
    """Deregister a NODE whose resource is Deleted or was force-released.

    Its mesh address is free again after ten minutes. Exits with status 1 if the node was not
    deregistered; a node that is already out of the mesh is a success.
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
