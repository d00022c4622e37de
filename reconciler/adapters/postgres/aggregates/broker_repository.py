# ruff: noqa: S608 - the only text put into a statement is the constant list of columns
"""The broker's repository on Postgres.

The aggregate's SQL and its transactions. State and event commit together; a write names the
version that it read. Source: seed 000 "Persistence", seed 001 "Persistence".
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, LiteralString

import asyncpg
from pydantic import ValidationError

from function.contract import record
from reconciler.adapters.postgres.aggregates import audit_rows, claims
from reconciler.adapters.postgres.aggregates.aggregate_rows import (
    COLUMNS,
    children,
    hydrate,
    protected,
    rendered_with,
    values,
)
from reconciler.adapters.postgres.aggregates.counts import PostgresCensus
from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.outbox import append
from reconciler.adapters.postgres.registration import token_issuer
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import (
    InvalidInputError,
    LivesElsewhereError,
    ProvisionedResourceNotFoundError,
    StaleAggregateError,
)
from reconciler.domain.aggregate.resource import ProvisionedResource, ResourceKey
from reconciler.domain.events import lifecycle
from reconciler.domain.events.audit import AuditEntry
from reconciler.domain.events.lifecycle import LifecycleEvent

_log = logging.getLogger(__name__)

_CREATE_ATTEMPTS: Final = 3
"""The row in the way can be torn down between two statements; hardly three times."""

_INSERT: LiteralString = f"""
INSERT INTO plexsphere.provisioned_resources ({COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
        $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)
ON CONFLICT (project_id, namespace, xr_group, xr_kind, owner_name, resource)
    WHERE deletion_requested_at IS NULL DO NOTHING
RETURNING {COLUMNS}
"""

_GET: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources WHERE id = $1
"""

_FIND_LIVE: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources
WHERE project_id = $1 AND namespace = $2 AND xr_group = $3 AND xr_kind = $4
  AND owner_name = $5 AND resource = $6 AND deletion_requested_at IS NULL
  AND management_cluster_id = $7
"""

_FIND_BY_RECORD: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources
WHERE record_uid = $1 AND management_cluster_id = $2
ORDER BY created_at DESC, id DESC
LIMIT 1
"""

_LIST_IN_NAMESPACE: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources
WHERE namespace = $1 AND status <> 'Deleted' AND management_cluster_id = $2
ORDER BY created_at, id
"""

_UPDATE: LiteralString = f"""
UPDATE plexsphere.provisioned_resources
SET status = $3, record_name = $4, record_uid = $5, accepted = $6, protected = $7,
    bootstrap_token_id = $8, generation = $9, updated_at = $10,
    force_released_at = coalesce(force_released_at, $11), enrolling_since = $12,
    recreations = $13, recreating_since = $14, children = $15, rendered_with = $16,
    provisioning_since = CASE WHEN $17 THEN coalesce(provisioning_since, clock_timestamp()) END,
    retries = greatest(retries, $18),
    version = version + 1
WHERE id = $1 AND version = $2
RETURNING {COLUMNS}
"""

_PROVISIONING_FOR: LiteralString = """
SELECT clock_timestamp() - provisioning_since FROM plexsphere.provisioned_resources WHERE id = $1
"""

_EXISTS: LiteralString = """
SELECT true FROM plexsphere.provisioned_resources WHERE id = $1
"""

_LOCK: LiteralString = f"""
SELECT {COLUMNS} FROM plexsphere.provisioned_resources WHERE id = $1 FOR NO KEY UPDATE
"""

_REQUEST_DELETION: LiteralString = f"""
UPDATE plexsphere.provisioned_resources
SET status = $2, deletion_requested_at = $3, updated_at = greatest(updated_at, $3),
    version = version + 1
WHERE id = $1
RETURNING {COLUMNS}
"""


class PostgresBrokerRepository(PostgresCensus):
    """Implements `ports.store.aggregates.BrokerRepository`."""

    async def create(self, resource: ProvisionedResource) -> ProvisionedResource:
        """Store a new aggregate with its Requested event, or return the live one."""
        with translated("create provisioned resource"):
            for _ in range(_CREATE_ATTEMPTS):
                created = await self._insert(resource)
                existing = created or await self.find_live(resource.key)
                if existing is not None:
                    return existing
                slug = await self.elsewhere_by_key(resource.key)
                if slug is not None:
                    raise LivesElsewhereError(slug)
        message = "cannot create provisioned resource: its key keeps changing hands"
        raise StaleAggregateError(message)

    async def get(self, resource_id: ids.ProvisionedResourceID) -> ProvisionedResource:
        """Return one aggregate, in any phase."""
        with translated("read provisioned resource"):
            row = await self._store.fetchrow(_GET, resource_id)
        if row is None:
            raise _not_found()
        return hydrate(row)

    async def provisioning_for(self, resource_id: ids.ProvisionedResourceID) -> timedelta | None:
        """Return for how long a substrate has been due, by the database's clock."""
        with translated("read provisioned resource"):
            took: timedelta | None = await self._store.fetchval(_PROVISIONING_FOR, resource_id)
        return took

    async def find_live(self, key: ResourceKey) -> ProvisionedResource | None:
        """Return the aggregate of a key whose deletion was not requested, or None."""
        with translated("find provisioned resource"):
            row = await self._store.fetchrow(_FIND_LIVE, *self._place(key))
        return None if row is None else hydrate(row)

    async def find_by_record(self, uid: str) -> ProvisionedResource | None:
        """Return the newest aggregate that a record object speaks for, or None."""
        with translated("find provisioned resource"):
            row = await self._store.fetchrow(_FIND_BY_RECORD, uid, self._cluster)
        return None if row is None else hydrate(row)

    async def list_in_namespace(self, namespace: str) -> Sequence[ProvisionedResource]:
        """Return every aggregate of a namespace that is not Deleted, oldest first."""
        with translated("list provisioned resources"):
            rows = await self._store.fetch(_LIST_IN_NAMESPACE, namespace, self._cluster)
        return _hydrated(rows)

    async def update(
        self,
        resource: ProvisionedResource,
        *,
        event: LifecycleEvent | None = None,
        audit: AuditEntry | None = None,
    ) -> ProvisionedResource:
        """Store a change, its event and its audit entry, in one transaction."""
        with translated("update provisioned resource"):
            async with self._store.write() as connection:
                await claims.follow(connection, resource)
                row = await connection.fetchrow(_UPDATE, *_change(resource))
                if row is None:
                    raise await _why_not(connection, resource)
                if event is not None:
                    await append.append_once(
                        connection,
                        aggregate_id=resource.id,
                        event=event,
                        occurred_at=resource.updated_at,
                    )
                if audit is not None:
                    await audit_rows.append(connection, resource, audit)
                return hydrate(row)

    async def record_deletion_intent(self, resource: ProvisionedResource) -> ProvisionedResource:
        """Commit an accepted deletion request: its Deleting event, the end of its tokens."""
        requested_at = resource.deletion_requested_at
        if requested_at is None:
            message = "cannot record deletion intent: deletion_requested_at must be set"
            raise InvalidInputError(message)
        with translated("record deletion intent"):
            async with self._store.write() as connection:
                row = await connection.fetchrow(_LOCK, resource.id)
                if row is None:
                    raise _not_found()
                stored = hydrate(row)
                if stored.deletion_requested_at is not None:
                    return stored
                row = await connection.fetchrow(
                    _REQUEST_DELETION, resource.id, resource.phase.value, requested_at
                )
                requested = hydrate(row)
                await connection.execute(token_issuer.REVOKE, resource.id)
                await append.append_once(
                    connection,
                    aggregate_id=resource.id,
                    event=lifecycle.deleting(requested),
                    occurred_at=requested_at,
                )
                return requested

    async def _insert(self, resource: ProvisionedResource) -> ProvisionedResource | None:
        async with self._store.write() as connection:
            row = await connection.fetchrow(_INSERT, *values(resource))
            if row is None:
                return None
            await claims.claim(connection, resource)
            await append.append_once(
                connection,
                aggregate_id=resource.id,
                event=lifecycle.requested(resource),
                occurred_at=resource.created_at,
            )
            return hydrate(row)


def _change(resource: ProvisionedResource) -> tuple[Any, ...]:
    """Return the parameters of `_UPDATE`."""
    return (
        resource.id,
        resource.version,
        resource.phase.value,
        resource.record.name,
        resource.record.uid,
        record.wire(resource.accepted),
        protected(resource),
        resource.bootstrap_token_id,
        resource.generation,
        resource.updated_at,
        resource.force_released_at,
        resource.enrolling_since,
        resource.recreations,
        resource.recreating_since,
        children(resource),
        rendered_with(resource),
        resource.provisioning_since is not None,
        resource.retries,
    )


async def _why_not(connection: asyncpg.Connection, resource: ProvisionedResource) -> Exception:
    if await connection.fetchval(_EXISTS, resource.id) is None:
        return _not_found()
    return StaleAggregateError("cannot update provisioned resource: it changed since it was read")


def _hydrated(rows: Sequence[asyncpg.Record]) -> tuple[ProvisionedResource, ...]:
    """Hydrate rows; one that drifted from the invariants is named and stops no other."""
    found: list[ProvisionedResource] = []
    for row in rows:
        try:
            found.append(hydrate(row))
        except (ValidationError, InvalidInputError):
            _log.exception("row_unreadable provisioned_resource_id=%s", row["id"])
    return tuple(found)


def _not_found() -> ProvisionedResourceNotFoundError:
    return ProvisionedResourceNotFoundError("cannot find provisioned resource: no row has this id")
