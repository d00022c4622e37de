"""Appending to the broker's audit.

The one insert. Called inside the transaction of the change that the entry tells of.
"""

from __future__ import annotations

from typing import LiteralString

import asyncpg
from uuid_utils.compat import uuid7

from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events.audit import AuditEntry

_APPEND: LiteralString = """
INSERT INTO plexsphere.broker_audit
    (id, management_cluster_id, project_id, provisioned_resource_id, namespace, record_name,
     action, reason, actor)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (provisioned_resource_id) WHERE action = 'force-release' DO NOTHING
"""


async def append(
    connection: asyncpg.Connection, resource: ProvisionedResource, entry: AuditEntry
) -> None:
    """Append an entry about an aggregate, at the database's time.

    Idempotency: a second `force-release` of one aggregate is not stored.
    """
    await connection.execute(
        _APPEND,
        uuid7(),
        resource.management_cluster_id,
        resource.project_id,
        resource.id,
        resource.key.namespace,
        resource.record.name,
        entry.action.value,
        entry.reason,
        entry.actor,
    )
