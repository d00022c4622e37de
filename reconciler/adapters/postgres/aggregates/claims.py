# ruff: noqa: S608 - the only text put into a statement is the constant list of columns
"""Claims protected objects: of two aggregates that come at once, the database lets one.

The lock and the rows that are in question. Source: docs/enrol.md "What is refused";
Postgres, "Advisory Locks".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import LiteralString

import asyncpg

from reconciler.adapters.postgres.aggregates.aggregate_rows import COLUMNS, hydrate
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import protection

_STORED: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources WHERE id = $1
"""

_LOCK: LiteralString = """
SELECT pg_advisory_xact_lock(hashtextextended('plexsphere.protected/' || $1 || '/' || $2, 0))
"""
"""One namespace of one cluster at a time, to the end of the transaction. A statement after it
sees what the one before committed. Two names that hash alike only wait for each other."""

_CONTESTED: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources
WHERE namespace = $1 AND management_cluster_id = $2 AND id <> $3 AND status <> 'Deleted'
  AND EXISTS (
    SELECT 1 FROM jsonb_array_elements(protected) AS held
    JOIN jsonb_array_elements($4::jsonb) AS wanted
      ON held->'reference'->>'kind' = wanted->>'kind'
     AND held->'reference'->>'name' = wanted->>'name'
  )
ORDER BY created_at, id
"""


async def follow(connection: asyncpg.Connection, resource: ProvisionedResource) -> None:
    """Decide, before an aggregate is changed, about what it did not protect so far.

    Raises:
        ProtectedElsewhereError: Another one protects it.
    """
    if resource.enrolled and len(resource.protected) > 1:
        row = await connection.fetchrow(_STORED, resource.id)
        await claim(connection, resource, known=() if row is None else hydrate(row).protected)


async def claim(
    connection: asyncpg.Connection,
    resource: ProvisionedResource,
    *,
    known: Iterable[ProtectedObject] = (),
) -> None:
    """Decide about what an aggregate protects beyond what is known, until the transaction ends.

    A blueprint's XR has a name of its own, which nobody can have taken before it was minted.

    Raises:
        ProtectedElsewhereError: Another one protects it.
    """
    fresh = protection.added(resource, known)
    if not resource.enrolled or not fresh:
        return
    namespace, cluster = resource.key.namespace, resource.management_cluster_id
    await connection.execute(_LOCK, str(cluster), namespace)
    wanted = [{"kind": item.reference.kind, "name": item.reference.name} for item in fresh]
    rows = await connection.fetch(_CONTESTED, namespace, cluster, resource.id, wanted)
    protection.refuse_contested(resource, fresh, [hydrate(row) for row in rows])
