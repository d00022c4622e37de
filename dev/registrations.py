"""Machines that wait for their registration, many at once, in a migrated database.

Rows of Domain, Projects, resources and tokens, and the bodies that spend them. For load in
tests and benchmarks: the rows are those of the repositories, written in bulk.
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from function.contract import names
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.postgres.aggregates.tenancy_repository import PostgresTenancyRepository
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import token as token_text

MESH = "100.64.0.0/10"
"""Four million hosts."""

_RESOURCES = """
INSERT INTO plexsphere.provisioned_resources
    (id, resource_id, project_id, blueprint_version_id, cloud_credential_id,
     management_cluster_id, status, xr_name, namespace, xr_group, xr_kind, owner_name, resource,
     record_name, record_uid, accepted, protected, created_at, updated_at)
SELECT id, id, project_id, id, id, $3, 'Enrolling', xr_name, 'load', 'g', 'k', xr_name, 'substrate',
       xr_name, xr_name, '{}', '[]', now(), now()
FROM unnest($1::uuid[], $2::uuid[], $4::text[]) AS row (id, project_id, xr_name)
"""

_TOKENS = """
INSERT INTO plexsphere.bootstrap_tokens
    (id, project_id, provisioned_resource_id, kind, env, generation, token_hash, expires_at)
SELECT gen_random_uuid(), project_id, id, 'node', 'load', 1, token_hash, now() + interval '1 hour'
FROM unnest($1::uuid[], $2::uuid[], $3::bytea[]) AS row (id, project_id, token_hash)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that waits.

    Attributes:
        token_digest: Finds its token's row.
        fields: Its registration but nonce and key, as JSON has them.
    """

    token_digest: bytes
    fields: dict[str, Any]

    def body(self) -> bytes:
        """Return one registration, with a nonce and a key of its own."""
        fresh = {
            "nonce": secrets.token_hex(16),
            "public_key": base64.b64encode(secrets.token_bytes(32)).decode(),
        }
        return json.dumps({**self.fields, **fresh}).encode()


async def seed(dsn: str, *, count: int, projects: int) -> list[Machine]:
    """Store machines, spread evenly over Projects of one Domain.

    Args:
        dsn: A migrated database.
        count: How many machines.
        projects: Over how many Projects.
    """
    source = SystemSecretSource(env="load")
    pool = await open_pool(dsn)
    try:
        tenancy = PostgresTenancyRepository(FencedStore(pool), source)
        await tenancy.ensure_domain("load", MESH)
        cluster = await tenancy.ensure_cluster("load", "Load")
        owners = [
            await tenancy.ensure_project(None, f"load-{secrets.token_hex(8)}", "load")
            for _ in range(projects)
        ]
        return await _store(pool, source, cluster, [owners[n % projects] for n in range(count)])
    finally:
        await pool.close()


async def _store(
    pool: asyncpg.Pool, source: SystemSecretSource, cluster: UUID, owners: list[ids.ProjectID]
) -> list[Machine]:
    resources = [ids.ProvisionedResourceID(uuid7()) for _ in owners]
    handles = [names.xr_name(each) for each in resources]
    tokens = [source.token(owner) for owner in owners]
    digests = [token_text.digest(each) for each in tokens]
    await pool.execute(_RESOURCES, resources, owners, cluster, handles)
    await pool.execute(_TOKENS, resources, owners, digests)
    return [
        Machine(
            token_digest=digest,
            fields={
                "project_id": str(owner),
                "resource_handle": handle,
                "bootstrap_token": token.reveal(),
            },
        )
        for owner, handle, token, digest in zip(owners, handles, tokens, digests, strict=True)
    ]
