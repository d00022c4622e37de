"""Domains, Projects, clusters and placements on Postgres.

Their rows, minted once.
"""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from function.contract import names
from reconciler.adapters.postgres.connection.classify import translated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.ports.registration import SecretSource
from reconciler.ports.store.tenancy import ProjectRow

_INSERT_DOMAIN: LiteralString = """
INSERT INTO plexsphere.domains
    (id, name, mesh_cidr, signing_key_id, signing_private_key, signing_public_key)
VALUES ($1, $2, $3::text::cidr, $4, $5, $6)
ON CONFLICT (name) DO NOTHING
"""

_FIND_DOMAIN: LiteralString = """
SELECT id, mesh_cidr = $2::text::cidr AS same_range FROM plexsphere.domains WHERE name = $1
"""

_DOMAIN_ID: LiteralString = "SELECT id FROM plexsphere.domains WHERE name = $1"

_INSERT_PROJECT: LiteralString = """
INSERT INTO plexsphere.projects (id, name, domain_id, namespace)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
"""

_FIND_PROJECT: LiteralString = """
SELECT id, name, domain_id, namespace FROM plexsphere.projects WHERE name = $1
"""

_INSERT_CLUSTER: LiteralString = """
INSERT INTO plexsphere.management_clusters (id, name, slug)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
"""
"""Naming no index: of those that come at once, some meet the slug's first."""

_NAME_CLUSTER: LiteralString = """
UPDATE plexsphere.management_clusters SET name = $2, updated_at = greatest(created_at, now())
WHERE id = $1 AND name <> $2
"""
"""`now()` is when the transaction began: before whoever made the row, where both came at once."""

_KNOWN_CLUSTER: LiteralString = """
SELECT true FROM plexsphere.management_clusters WHERE id = $1 AND name = $2
"""
"""Asked first, for a conflicting insert locks its row, which is a write, too."""

_KNOWN_ASSIGNMENT: LiteralString = """
SELECT true FROM plexsphere.project_cluster_assignments
WHERE project_id = $1 AND management_cluster_id = $2 AND namespace_name = $3
  AND namespace_phase = $4
"""

_ASSIGN: LiteralString = """
INSERT INTO plexsphere.project_cluster_assignments
    (project_id, management_cluster_id, namespace_name, namespace_phase)
VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id) DO UPDATE
SET management_cluster_id = excluded.management_cluster_id,
    namespace_name = excluded.namespace_name,
    namespace_phase = excluded.namespace_phase,
    updated_at = greatest(project_cluster_assignments.assigned_at, now())
WHERE (project_cluster_assignments.management_cluster_id,
       project_cluster_assignments.namespace_name,
       project_cluster_assignments.namespace_phase)
    IS DISTINCT FROM
      (excluded.management_cluster_id, excluded.namespace_name, excluded.namespace_phase)
"""


class PostgresTenancyRepository:
    """Implements `ports.store.tenancy.TenancyRepository`."""

    def __init__(self, store: FencedStore, secrets: SecretSource) -> None:
        self._store = store
        self._secrets = secrets

    async def ensure_domain(self, name: str, mesh_cidr: str) -> UUID:
        """Return a Domain's id; its first call mints id and signing key."""
        with translated("ensure domain"):
            try:
                row = await self._domain(name, mesh_cidr)
            except asyncpg.DataError as error:
                message = "cannot ensure domain: meshCIDR must be a network in CIDR form"
                raise InvalidInputError(message) from error
        if row is None or not row["same_range"]:
            message = "cannot ensure domain: meshCIDR is immutable while the Domain exists"
            raise InvalidInputError(message)
        return UUID(int=row["id"].int)

    async def ensure_project(
        self, project_id: ids.ProjectID | None, name: str, domain: str
    ) -> ids.ProjectID:
        """Return a Project's id; its first call stores the given one or mints one."""
        with translated("ensure project"):
            domain_id = await self._store.fetchval(_DOMAIN_ID, domain)
            if domain_id is None:
                message = "cannot ensure project: domainRef.name refers to no Domain"
                raise InvalidInputError(message)
            row = await self._store.fetchrow(_FIND_PROJECT, name)
            if row is None:
                new_id = project_id or ids.ProjectID(uuid7())
                namespace = names.project_namespace(new_id)
                async with self._store.write() as connection:
                    await connection.execute(_INSERT_PROJECT, new_id, name, domain_id, namespace)
                row = await self._store.fetchrow(_FIND_PROJECT, name)
        if row is None:
            message = "cannot ensure project: id belongs to another Project"
            raise InvalidInputError(message)
        stored = ids.ProjectID(UUID(int=row["id"].int))
        if project_id is not None and stored != project_id:
            message = "cannot ensure project: id is immutable"
            raise InvalidInputError(message)
        if row["domain_id"] != domain_id:
            message = "cannot ensure project: domainRef is immutable"
            raise InvalidInputError(message)
        return stored

    async def find_project(self, name: str) -> ProjectRow | None:
        """Return a Project by name, or None."""
        with translated("find project"):
            row = await self._store.fetchrow(_FIND_PROJECT, name)
        if row is None:
            return None
        return ProjectRow(
            id=ids.ProjectID(UUID(int=row["id"].int)), name=row["name"], namespace=row["namespace"]
        )

    async def ensure_cluster(self, slug: str, display_name: str) -> ids.ManagementClusterID:
        """Return a cluster's id, which its slug determines; store it the first time."""
        cluster_id = ids.management_cluster_id(slug)
        with translated("ensure management cluster"):
            if await self._store.fetchval(_KNOWN_CLUSTER, cluster_id, display_name):
                return cluster_id
            async with self._store.write() as connection:
                await connection.execute(_INSERT_CLUSTER, cluster_id, display_name, slug)
                await connection.execute(_NAME_CLUSTER, cluster_id, display_name)
        return cluster_id

    async def assign_project(
        self,
        project_id: ids.ProjectID,
        cluster_id: ids.ManagementClusterID,
        *,
        namespace: str,
        phase: str,
    ) -> None:
        """Store where a Project lives and its namespace's phase."""
        with translated("assign project"):
            if await self._store.fetchval(
                _KNOWN_ASSIGNMENT, project_id, cluster_id, namespace, phase
            ):
                return
            async with self._store.write() as connection:
                await connection.execute(_ASSIGN, project_id, cluster_id, namespace, phase)

    async def _domain(self, name: str, mesh_cidr: str) -> asyncpg.Record | None:
        row = await self._store.fetchrow(_FIND_DOMAIN, name, mesh_cidr)
        if row is not None:
            return row
        domain_id = uuid7()
        key = self._secrets.signing_key()
        key_id = f"did:plexsphere:domain:{domain_id}#key-1"
        async with self._store.write() as connection:
            await connection.execute(
                _INSERT_DOMAIN, domain_id, name, mesh_cidr, key_id, key.private, key.public
            )
        return await self._store.fetchrow(_FIND_DOMAIN, name, mesh_cidr)
