"""The statements of one registration.

The SQL of `ports.registration.RegistrationUnit`. Two round trips: what is stored is read
without a lock and judged; `plexsphere.register_node` takes the locks, resource and token in
this order as everywhere, and writes in one transaction, unless what was judged no longer
holds. Then it is judged again. Nothing is locked while we think.
"""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.adapters.postgres.registration import enrolment_audit, mesh_addresses
from reconciler.adapters.postgres.registration.token_issuer import STATE
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.peers import Peers
from reconciler.domain.identity.registration import (
    READMISSIONS_MAX,
    PriorRegistration,
    RegistrationFacts,
    TokenFacts,
)
from reconciler.domain.identity.registration_body import RegistrationRequest
from reconciler.ports.registration import AllocationLostError, DeniedRegistration, MeshView, NewNode

_FACTS: LiteralString = (
    "SELECT "  # noqa: S608 - constants
    + STATE
    + " AS state, "
    + mesh_addresses.MORE
    + """ AS more, token.id, token.project_id, token.provisioned_resource_id, resource.xr_name,
    resource.deletion_requested_at IS NOT NULL AS deleting, project.domain_id,
    mesh.mesh_range::text AS mesh_range, project.mesh_subrange IS NOT NULL AS own_range,
    prior.id AS prior_id, prior.public_key AS prior_key, own.nonce_hash AS prior_nonce,
    coalesce(prior.reported_at, prior.last_heartbeat_at) IS NOT NULL AS reported,
    prior.deregistered_at IS NULL AS live, prior.readmitted,
    holder.bootstrap_token_id AS nonce_holder,
    (
        SELECT count(*) FROM (
            SELECT FROM plexsphere.mesh_free
            WHERE domain_id = project.domain_id AND mesh_range = mesh.mesh_range
              AND rests_until <= now()
            ORDER BY rests_until, address LIMIT $4
        ) AS free
    ) AS ready,
    EXISTS (
        SELECT FROM plexsphere.mesh_free
        WHERE domain_id = project.domain_id AND mesh_range = mesh.mesh_range
    ) AS free,
    EXISTS (
        SELECT FROM plexsphere.nodes
        WHERE domain_id = project.domain_id AND public_key = $3 AND deregistered_at IS NULL
          AND provisioned_resource_id <> token.provisioned_resource_id
    ) AS key_in_use
FROM plexsphere.bootstrap_tokens AS token
JOIN plexsphere.provisioned_resources AS resource ON resource.id = token.provisioned_resource_id
JOIN plexsphere.projects AS project ON project.id = token.project_id
JOIN plexsphere.domains AS domain ON domain.id = project.domain_id
CROSS JOIN LATERAL (
    SELECT coalesce(project.mesh_subrange, domain.mesh_cidr) AS mesh_range
) AS mesh
LEFT JOIN plexsphere.nodes AS prior ON prior.bootstrap_token_id = token.id
LEFT JOIN plexsphere.registration_nonces AS own ON own.bootstrap_token_id = prior.bootstrap_token_id
LEFT JOIN plexsphere.registration_nonces AS holder
  ON holder.project_id = token.project_id AND holder.nonce_hash = $2
LEFT JOIN plexsphere.mesh_pools AS pool
  ON pool.domain_id = project.domain_id AND pool.mesh_range = mesh.mesh_range
WHERE token.token_hash = $1
"""
)

_MESH: LiteralString = """
SELECT domain.mesh_cidr::text AS cidr, domain.signing_key_id, domain.signing_public_key,
       {mesh_ip} AS mesh_ip, plexsphere.peers_of($1, $2) AS peers
FROM {source}, plexsphere.domains AS domain
WHERE domain.id = $3
"""

_ADMIT: LiteralString = _MESH.format(
    mesh_ip="host(registered)",
    source="plexsphere.register_node($1, $2, $3, $4, $5, $6, $7, $8, $9::text::cidr, $10, $11, "
    "$12) AS registered",
)

_READMIT: LiteralString = (
    """
WITH readmitted AS (
    UPDATE plexsphere.nodes
    SET earlier_nsk_hashes = CASE WHEN previous_nsk_hash IS NULL THEN earlier_nsk_hashes
            ELSE array_append(earlier_nsk_hashes, previous_nsk_hash) END,
        previous_nsk_hash = nsk_hash, nsk_hash = $5, readmitted = readmitted + 1
    WHERE id = $4 AND reported_at IS NULL AND last_heartbeat_at IS NULL
      AND deregistered_at IS NULL AND readmitted < $6
      AND EXISTS (
          SELECT FROM plexsphere.provisioned_resources AS resource
          WHERE resource.id = nodes.provisioned_resource_id
            AND resource.deletion_requested_at IS NULL
      )
    RETURNING mesh_ip
), audited AS (
    INSERT INTO plexsphere.enrolment_evidence
        (code, status, bootstrap_token_id, provisioned_resource_id, project_id, node_id,
         remote_address, block, last_address)
    SELECT 'readmitted', 201, $7, $2, $1, $4, $8, plexsphere.address_block($8), $8 FROM readmitted
)
"""  # noqa: S608 - constants
    + _MESH.format(mesh_ip="host(readmitted.mesh_ip)", source="readmitted")
)


class PostgresRegistration:
    """Implements `ports.registration.RegistrationUnit` on one connection.

    Args:
        connection: In no transaction.
        lock_wait_ms: Longest wait for one lock.
    """

    def __init__(self, connection: asyncpg.Connection, *, lock_wait_ms: int) -> None:
        self._connection = connection
        self._lock_wait_ms = lock_wait_ms
        self._mesh_range = ""

    async def facts(self, request: RegistrationRequest) -> RegistrationFacts:
        """Read what is stored about a request."""
        row = await self._connection.fetchrow(
            _FACTS, request.token_digest, request.nonce_digest, request.public_key,
            mesh_addresses.READY_MIN,
        )  # fmt: skip
        if row is None:
            return RegistrationFacts(token=None)
        self._mesh_range = row["mesh_range"]
        token = _token(row)
        # A range that was never laid out has no row of its own yet.
        more = row["more"] is not False
        if (
            token.state is BootstrapState.ISSUED
            and more
            and row["ready"] < mesh_addresses.READY_MIN
        ):
            await mesh_addresses.lay_out(
                self._connection, token.domain_id, self._mesh_range, wait=row["ready"] == 0
            )
        holder = row["nonce_holder"]
        return RegistrationFacts(
            token=token,
            prior=None if row["prior_id"] is None else _prior(row),
            nonce_holder=None if holder is None else ids.BootstrapTokenID(_uuid(holder)),
            key_in_use=row["key_in_use"],
            address_free=more or row["free"],
            own_range=row["own_range"],
        )

    async def admit(self, request: RegistrationRequest, node: NewNode) -> MeshView:
        """Consume the token, revoke its siblings, store node, nonce and event."""
        token = node.token
        row = await self._connection.fetchrow(
            _ADMIT, token.project_id, token.provisioned_resource_id, token.domain_id, token.id,
            node.id, request.public_key, node.nsk_digest, request.nonce_digest, self._mesh_range,
            uuid7(), uuid7(), self._lock_wait_ms,
        )  # fmt: skip
        if row is None:
            message = "cannot register node: its token or resource changed since it was read"
            raise AllocationLostError(message)
        return _mesh(row)

    async def readmit(
        self, token: TokenFacts, node_id: ids.NodeID, *, nsk_digest: bytes, remote_address: str
    ) -> MeshView:
        """Replace the key of a node that never reported, remember the former ones, audit it."""
        row = await self._connection.fetchrow(
            _READMIT, token.project_id, token.provisioned_resource_id, token.domain_id, node_id,
            nsk_digest, READMISSIONS_MAX, token.id, remote_address,
        )  # fmt: skip
        if row is None:
            message = (
                "cannot readmit node: it has reported, left, retried too often or is being deleted"
            )
            raise AllocationLostError(message)
        return _mesh(row)

    async def record_denial(self, denial: DeniedRegistration) -> None:
        """Append a denial to the audit."""
        await enrolment_audit.append(self._connection, denial)


def _token(row: asyncpg.Record) -> TokenFacts:
    return TokenFacts(
        id=ids.BootstrapTokenID(_uuid(row["id"])),
        state=BootstrapState(row["state"]),
        project_id=ids.ProjectID(_uuid(row["project_id"])),
        domain_id=_uuid(row["domain_id"]),
        provisioned_resource_id=ids.ProvisionedResourceID(_uuid(row["provisioned_resource_id"])),
        resource_handle=row["xr_name"],
        deletion_requested=row["deleting"],
    )


def _prior(row: asyncpg.Record) -> PriorRegistration:
    return PriorRegistration(
        node_id=ids.NodeID(_uuid(row["prior_id"])),
        public_key=row["prior_key"],
        nonce_digest=row["prior_nonce"],
        reported=row["reported"],
        live=row["live"],
        readmitted=row["readmitted"],
    )


def _mesh(row: asyncpg.Record) -> MeshView:
    return MeshView(
        cidr=row["cidr"],
        signing_key_id=row["signing_key_id"],
        signing_public_key=row["signing_public_key"],
        mesh_ip=row["mesh_ip"],
        peers=Peers(row["peers"]),
    )


def _uuid(value: UUID) -> UUID:
    return UUID(int=value.int)
