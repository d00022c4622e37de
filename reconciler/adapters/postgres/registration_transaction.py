"""The statements of one registration.

Belongs here: the SQL of `ports.identity.RegistrationTransaction`. Not here: deciding
anything, and where the transaction begins and ends (`enrolment_store`). Locks are taken in
one order everywhere: resource, token, Domain.
"""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

import asyncpg

from function.contract.strategy import BootstrapState
from reconciler.adapters.postgres.token_issuer import STATE
from reconciler.domain.broker import ids
from reconciler.domain.identity.registration import (
    PriorRegistration,
    RegistrationFacts,
    TokenFacts,
)
from reconciler.domain.identity.registration_body import RegistrationRequest
from reconciler.ports.identity import MeshView, NewNode, Peer

_LOCK_RESOURCE: LiteralString = """
SELECT resource.id, resource.xr_name, resource.deletion_requested_at, project.domain_id
FROM plexsphere.provisioned_resources AS resource
JOIN plexsphere.projects AS project ON project.id = resource.project_id
WHERE resource.id = (
    SELECT provisioned_resource_id FROM plexsphere.bootstrap_tokens WHERE token_hash = $1
)
FOR NO KEY UPDATE OF resource
"""

_LOCK_TOKEN: LiteralString = (
    "SELECT id, project_id, "
    + STATE
    + """ AS state
FROM plexsphere.bootstrap_tokens WHERE token_hash = $1 FOR NO KEY UPDATE
"""
)

_PRIOR: LiteralString = """
SELECT node.id, node.public_key, nonce.nonce_hash,
       node.last_heartbeat_at IS NOT NULL AS reported, node.deregistered_at IS NULL AS live
FROM plexsphere.nodes AS node
JOIN plexsphere.registration_nonces AS nonce
  ON nonce.bootstrap_token_id = node.bootstrap_token_id
WHERE node.bootstrap_token_id = $1
FOR NO KEY UPDATE OF node
"""

_NONCE_HOLDER: LiteralString = """
SELECT bootstrap_token_id FROM plexsphere.registration_nonces
WHERE project_id = $1 AND nonce_hash = $2
"""

_LOCK_DOMAIN: LiteralString = """
SELECT true FROM plexsphere.domains WHERE id = $1 FOR NO KEY UPDATE
"""

# The lowest address that is the range's first host or follows a live node's, and is free.
_FREE_ADDRESS: LiteralString = """
WITH mesh AS (
    SELECT host(network(mesh_cidr))::inet + 1 AS first, host(broadcast(mesh_cidr))::inet AS last
    FROM plexsphere.domains WHERE id = $1
), candidate AS (
    SELECT first AS address FROM mesh
    UNION ALL
    SELECT mesh_ip + 1 FROM plexsphere.nodes WHERE domain_id = $1 AND deregistered_at IS NULL
)
SELECT host(address) FROM candidate, mesh
WHERE address < last AND NOT EXISTS (
    SELECT FROM plexsphere.nodes
    WHERE domain_id = $1 AND mesh_ip = address AND deregistered_at IS NULL
)
ORDER BY address
LIMIT 1
"""

_CONSUME: LiteralString = """
UPDATE plexsphere.bootstrap_tokens SET consumed_at = now()
WHERE id = $1 AND consumed_at IS NULL AND revoked_at IS NULL AND expires_at > now()
RETURNING true
"""

_REVOKE_SIBLINGS: LiteralString = """
UPDATE plexsphere.bootstrap_tokens SET revoked_at = now()
WHERE provisioned_resource_id = $1 AND id <> $2
  AND consumed_at IS NULL AND revoked_at IS NULL
"""

_SUPERSEDE: LiteralString = """
UPDATE plexsphere.nodes SET deregistered_at = now()
WHERE provisioned_resource_id = $1 AND deregistered_at IS NULL
"""

_INSERT_NODE: LiteralString = """
INSERT INTO plexsphere.nodes
    (id, project_id, domain_id, provisioned_resource_id, bootstrap_token_id, public_key,
     mesh_ip, nsk_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7::text::inet, $8)
"""

_INSERT_NONCE: LiteralString = """
INSERT INTO plexsphere.registration_nonces (project_id, nonce_hash, bootstrap_token_id)
VALUES ($1, $2, $3)
"""

_REPLACE_KEY: LiteralString = """
UPDATE plexsphere.nodes SET nsk_hash = $2 WHERE id = $1 AND last_heartbeat_at IS NULL
"""

_MESH: LiteralString = """
SELECT domain.mesh_cidr::text AS cidr, domain.signing_key_id, domain.signing_public_key,
       host(node.mesh_ip) AS mesh_ip
FROM plexsphere.domains AS domain
JOIN plexsphere.nodes AS node ON node.domain_id = domain.id
WHERE node.id = $1
"""

_PEERS: LiteralString = """
SELECT id, host(mesh_ip) AS mesh_ip, public_key FROM plexsphere.nodes
WHERE domain_id = $1 AND id <> $2 AND deregistered_at IS NULL
ORDER BY id
"""


class PostgresRegistration:
    """Implements `ports.identity.RegistrationTransaction` on one connection."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def facts(self, request: RegistrationRequest) -> RegistrationFacts:
        """Read what is stored about a request, and lock it until the end."""
        fetchrow = self._connection.fetchrow
        resource = await fetchrow(_LOCK_RESOURCE, request.token_digest)
        row = await fetchrow(_LOCK_TOKEN, request.token_digest)
        if resource is None or row is None:
            return RegistrationFacts(token=None)
        token = TokenFacts(
            id=ids.BootstrapTokenID(_uuid(row["id"])),
            state=BootstrapState(row["state"]),
            project_id=ids.ProjectID(_uuid(row["project_id"])),
            domain_id=_uuid(resource["domain_id"]),
            provisioned_resource_id=ids.ProvisionedResourceID(_uuid(resource["id"])),
            resource_handle=resource["xr_name"],
            deletion_requested=resource["deletion_requested_at"] is not None,
        )
        address = None
        if token.state is BootstrapState.ISSUED:
            # Before the nonce is looked up: it then stays free until this one commits.
            await self._connection.fetchval(_LOCK_DOMAIN, token.domain_id)
            address = await self._connection.fetchval(_FREE_ADDRESS, token.domain_id)
        prior = await fetchrow(_PRIOR, token.id)
        holder = await self._connection.fetchval(
            _NONCE_HOLDER, token.project_id, request.nonce_digest
        )
        return RegistrationFacts(
            token=token,
            prior=None if prior is None else _prior(prior),
            nonce_holder=None if holder is None else ids.BootstrapTokenID(_uuid(holder)),
            free_address=address,
        )

    async def admit(self, request: RegistrationRequest, node: NewNode) -> None:
        """Consume the token, revoke its siblings, and store node and nonce."""
        token = node.token
        execute = self._connection.execute
        if not await self._connection.fetchval(_CONSUME, token.id):
            message = "cannot register node: the locked token is not live"
            raise AssertionError(message)
        await execute(_REVOKE_SIBLINGS, token.provisioned_resource_id, token.id)
        await execute(_SUPERSEDE, token.provisioned_resource_id)
        await execute(
            _INSERT_NODE, node.id, token.project_id, token.domain_id,
            token.provisioned_resource_id, token.id, request.public_key, node.mesh_ip,
            node.nsk_digest,
        )  # fmt: skip
        await execute(_INSERT_NONCE, token.project_id, request.nonce_digest, token.id)

    async def readmit(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> None:
        """Replace the key of a node that never reported."""
        await self._connection.execute(_REPLACE_KEY, node_id, nsk_digest)

    async def mesh(self, domain_id: UUID, *, node_id: ids.NodeID) -> MeshView:
        """Return what a node of this transaction learns of its Domain."""
        row = await self._connection.fetchrow(_MESH, node_id)
        peers = await self._connection.fetch(_PEERS, domain_id, node_id)
        return MeshView(
            cidr=row["cidr"],
            signing_key_id=row["signing_key_id"],
            signing_public_key=row["signing_public_key"],
            mesh_ip=row["mesh_ip"],
            peers=tuple(
                Peer(
                    node_id=ids.NodeID(_uuid(peer["id"])),
                    mesh_ip=peer["mesh_ip"],
                    public_key=peer["public_key"],
                )
                for peer in peers
            ),
        )


def _prior(row: asyncpg.Record) -> PriorRegistration:
    return PriorRegistration(
        node_id=ids.NodeID(_uuid(row["id"])),
        public_key=row["public_key"],
        nonce_digest=row["nonce_hash"],
        reported=row["reported"],
        live=row["live"],
    )


def _uuid(value: UUID) -> UUID:
    return UUID(int=value.int)
