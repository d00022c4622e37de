"""Bootstrap tokens in memory."""

from __future__ import annotations

from datetime import timedelta

from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError, StaleAggregateError
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity import token as token_text
from reconciler.domain.identity.token_life import Generation, TokenLife
from reconciler.ports.registration import SecretSource
from reconciler.ports.store.aggregates import GENERATIONS_MAX, DrawnToken, IssuedToken
from tests.fakes.memory import MemoryStore, TokenRow


class InMemoryTokenIssuer:
    """Keeps the promises of `ports.store.aggregates.TokenIssuer`."""

    def __init__(self, store: MemoryStore, secrets: SecretSource | None = None) -> None:
        self.store = store
        self._secrets = secrets or SystemSecretSource(env="prod")

    async def draw(self, resource: ProvisionedResource, *, generation: int) -> DrawnToken:
        return DrawnToken(generation=generation, plaintext=self._secrets.token(resource.project_id))

    async def issue(
        self, resource: ProvisionedResource, drawn: DrawnToken, *, ttl: timedelta
    ) -> IssuedToken:
        generation, plaintext = drawn.generation, drawn.plaintext
        if not token_text.TTL_MIN <= ttl <= token_text.TTL_MAX:
            message = "cannot issue token: ttl must lie between 300 s and 24 h"
            raise InvalidInputError(message)
        stored = self.store.resources.get(resource.id)
        if stored is None or stored.deletion_requested_at is not None:
            message = "cannot issue token: the resource is gone or being deleted"
            raise StaleAggregateError(message)
        if any(
            node.resource_id == resource.id and node.deregistered_at is None
            for node in self.store.nodes.values()
        ):
            message = "cannot issue token: a node of the resource is registered"
            raise StaleAggregateError(message)
        for row in self.store.tokens.values():
            if (row.resource_id, row.generation) == (resource.id, generation):
                message = f"cannot issue token: generation {generation} was issued before"
                raise StaleAggregateError(message)
        now = self.store.clock.now()
        for row in self.store.tokens.values():
            earlier = row.resource_id == resource.id and row.generation < generation
            if earlier and not row.spent and row.expires_at <= now:
                row.revoked_at = now
        row = TokenRow(
            id=ids.BootstrapTokenID(uuid7()),
            project_id=resource.project_id,
            resource_id=resource.id,
            generation=generation,
            digest=token_text.digest(plaintext),
            issued_at=now,
            expires_at=now + ttl,
        )
        self.store.tokens[row.id] = row
        return IssuedToken(
            id=row.id, generation=generation, plaintext=plaintext, expires_at=row.expires_at
        )

    async def extend(
        self,
        token: ids.BootstrapTokenID,
        *,
        ttl: timedelta,
        unless_left: timedelta | None = None,
    ) -> None:
        named = self.store.tokens.get(token)
        now = self.store.clock.now()
        for row in self.store.tokens.values():
            if named is None or row.resource_id != named.resource_id or row.spent:
                continue
            if unless_left is None or row.expires_at < now + unless_left:
                cap = row.issued_at + token_text.TTL_MAX
                row.expires_at = max(row.expires_at, min(now + ttl, cap))

    async def revoke(self, resource: ids.ProvisionedResourceID) -> None:
        for row in self.store.tokens.values():
            if row.resource_id == resource and not row.spent:
                row.revoked_at = self.store.clock.now()

    async def state(self, token: ids.BootstrapTokenID) -> BootstrapState:
        row = self.store.tokens.get(token)
        return BootstrapState.NONE if row is None else row.state(self.store.clock.now())

    async def life(self, resource: ids.ProvisionedResourceID) -> TokenLife:
        now = self.store.clock.now()
        rows = [row for row in self.store.tokens.values() if row.resource_id == resource]
        rows.sort(key=lambda row: row.generation, reverse=True)
        generations = tuple(
            Generation(
                number=row.generation,
                state=row.state(now),
                issued_at=row.issued_at,
                consumed_at=row.consumed_at,
            )
            for row in rows[:GENERATIONS_MAX]
        )
        return TokenLife(generations=generations, now=now)
