"""Bootstrap tokens on Postgres.

A token's row from issue to its end. Only the digest is stored; time is the database's.
Source: design §5 "Tokens".
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import LiteralString

from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.adapters.postgres.connection.classify import refused, translated
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError, StaleAggregateError
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity import token as token_text
from reconciler.domain.identity.token_life import Generation, TokenLife
from reconciler.ports.registration import SecretSource
from reconciler.ports.store.aggregates import GENERATIONS_MAX, DrawnToken, IssuedToken

_LOCK_LIVE: LiteralString = """
SELECT true FROM plexsphere.provisioned_resources
WHERE id = $1 AND deletion_requested_at IS NULL
FOR NO KEY UPDATE
"""

_LOCK: LiteralString = """
SELECT true FROM plexsphere.provisioned_resources WHERE id = $1 FOR NO KEY UPDATE
"""

_NODE_IS_LIVE: LiteralString = """
SELECT true FROM plexsphere.nodes
WHERE provisioned_resource_id = $1 AND deregistered_at IS NULL
"""
"""After the lock and on its own, so that it sees what whoever held the lock has done."""

_LOCK_OF: LiteralString = """
SELECT true FROM plexsphere.provisioned_resources
WHERE id = (SELECT provisioned_resource_id FROM plexsphere.bootstrap_tokens WHERE id = $1)
FOR NO KEY UPDATE
"""

_ISSUE: LiteralString = """
INSERT INTO plexsphere.bootstrap_tokens
    (id, project_id, provisioned_resource_id, kind, env, generation, token_hash, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval)
ON CONFLICT (provisioned_resource_id, generation) DO NOTHING
RETURNING expires_at
"""

_CLOSE: LiteralString = """
UPDATE plexsphere.bootstrap_tokens
SET revoked_at = clock_timestamp()
WHERE provisioned_resource_id = $1 AND generation < $2 AND expires_at <= clock_timestamp()
    AND consumed_at IS NULL AND revoked_at IS NULL
"""
"""What a machine that vanished still carries: renewing the new window must not open its own."""

_EXTEND: LiteralString = """
UPDATE plexsphere.bootstrap_tokens
SET expires_at = greatest(expires_at, least(now() + $2::interval, issued_at + $3::interval))
WHERE provisioned_resource_id =
        (SELECT provisioned_resource_id FROM plexsphere.bootstrap_tokens WHERE id = $1)
    AND consumed_at IS NULL AND revoked_at IS NULL
    AND ($4::interval IS NULL OR expires_at < now() + $4::interval)
"""

REVOKE: LiteralString = """
UPDATE plexsphere.bootstrap_tokens
SET revoked_at = now()
WHERE provisioned_resource_id = $1 AND consumed_at IS NULL AND revoked_at IS NULL
"""
"""Takes a resource's lock before, as a registration does: two orders would deadlock."""

STATE: LiteralString = """
CASE WHEN consumed_at IS NOT NULL THEN 'Consumed'
     WHEN revoked_at IS NOT NULL THEN 'Revoked'
     WHEN expires_at <= now() THEN 'Expired'
     ELSE 'Issued' END
"""
"""A token's state as SQL, judged by the database's clock; the values are BootstrapState's."""

_STATE: LiteralString = (
    "SELECT " + STATE + " FROM plexsphere.bootstrap_tokens WHERE id = $1"  # noqa: S608 - constants
)


_LIFE: LiteralString = (
    "SELECT generation, "
    + STATE
    + """ AS state, issued_at, consumed_at, now() AS now
FROM plexsphere.bootstrap_tokens
WHERE provisioned_resource_id = $1
ORDER BY generation DESC
LIMIT $2
"""
)


class PostgresTokenIssuer:
    """Implements `ports.store.aggregates.TokenIssuer`."""

    def __init__(self, store: FencedStore, secrets: SecretSource) -> None:
        self._store = store
        self._secrets = secrets

    async def draw(self, resource: ProvisionedResource, *, generation: int) -> DrawnToken:
        """Draw the text of a token; nothing is stored."""
        return DrawnToken(generation=generation, plaintext=self._secrets.token(resource.project_id))

    async def issue(
        self, resource: ProvisionedResource, drawn: DrawnToken, *, ttl: timedelta
    ) -> IssuedToken:
        """Store a token; end earlier ones whose window has closed."""
        if not token_text.TTL_MIN <= ttl <= token_text.TTL_MAX:
            message = "cannot issue token: ttl must lie between 300 s and 24 h"
            raise InvalidInputError(message)
        token_id = ids.BootstrapTokenID(uuid7())
        generation, plaintext = drawn.generation, drawn.plaintext
        with translated("issue token"):
            async with self._store.write() as connection:
                if not await connection.fetchval(_LOCK_LIVE, resource.id):
                    message = "cannot issue token: the resource is gone or being deleted"
                    raise StaleAggregateError(message)
                if await connection.fetchval(_NODE_IS_LIVE, resource.id):
                    message = "cannot issue token: a node of the resource is registered"
                    raise StaleAggregateError(message)
                expires_at: datetime | None = await connection.fetchval(
                    _ISSUE, token_id, resource.project_id, resource.id, token_text.KIND_NODE,
                    self._secrets.env, generation, token_text.digest(plaintext), ttl,
                )  # fmt: skip
                if expires_at is None:
                    message = f"cannot issue token: generation {generation} was issued before"
                    raise StaleAggregateError(message)
                await connection.execute(_CLOSE, resource.id, generation)
        return IssuedToken(
            id=token_id, generation=generation, plaintext=plaintext, expires_at=expires_at
        )

    async def extend(
        self,
        token: ids.BootstrapTokenID,
        *,
        ttl: timedelta,
        unless_left: timedelta | None = None,
    ) -> None:
        """Restart unspent windows, up to 24 h after issue; never shorten one."""
        with translated("extend token"):
            async with self._store.write() as connection:
                # The resource first, as in a registration: two orders would deadlock.
                await connection.fetchval(_LOCK_OF, token)
                await connection.execute(_EXTEND, token, ttl, token_text.TTL_MAX, unless_left)

    async def revoke(self, resource: ids.ProvisionedResourceID) -> None:
        """Revoke every unspent token of a resource."""
        with refused("revoke tokens"):
            async with self._store.write() as connection:
                # The resource first, as in a registration: two orders would deadlock.
                await connection.fetchval(_LOCK, resource)
                await connection.execute(REVOKE, resource)

    async def state(self, token: ids.BootstrapTokenID) -> BootstrapState:
        """Return a token's state by the database's clock; None state for an unknown id."""
        with refused("read token state"):
            state = await self._store.fetchval(_STATE, token)
        return BootstrapState.NONE if state is None else BootstrapState(state)

    async def life(self, resource: ids.ProvisionedResourceID) -> TokenLife:
        """Return a resource's tokens by the database's clock, the newest first."""
        with translated("read token life"):
            rows = await self._store.fetch(_LIFE, resource, GENERATIONS_MAX)
        generations = tuple(
            Generation(
                number=row["generation"],
                state=BootstrapState(row["state"]),
                issued_at=row["issued_at"],
                consumed_at=row["consumed_at"],
            )
            for row in rows
        )
        now = rows[0]["now"] if rows else datetime.now(UTC)
        return TokenLife(generations=generations, now=now)
