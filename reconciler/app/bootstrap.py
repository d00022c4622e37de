"""The bootstrap of one aggregate: a token of the right generation, delivered and kept alive.

Belongs here: when a generation is minted, its delivery, the renewal of its window. Not
here: the token's own rows and rules (identity). A crash after any effect leaves a
generation without a Secret, which the next tick succeeds with a new one.
Source: design §5 "Tokens"; docs/decisions/0004.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from function.contract import names
from function.contract.conditions import Reason
from function.contract.strategy import BootstrapState
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.domain.broker.verdicts import Why
from reconciler.ports.broker import (
    BrokerRepository,
    TokenIssuer,
)
from reconciler.ports.cluster import (
    ManagementCluster,
)
from reconciler.ports.common import Clock

MINT_PAUSE: Final = timedelta(seconds=30)
"""Least time between two generations after the first (design §5: burst 1, then one per
30 s), counted from the aggregate's last write, so that it survives a restart."""

_HOLD_MISSING: Final = Why(
    reason=Reason.HOLD_MISSING,
    message="No token is issued: hold and hold-children must exist with Deny bindings.",
)
_PAUSE: Final = Why(
    reason=Reason.WAITING_FOR_TOKEN,
    message="The last token could not be delivered; the next one follows in half a minute.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapPorts:
    """The collaborators of bootstrapping."""

    repository: BrokerRepository
    cluster: ManagementCluster
    tokens: TokenIssuer
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensured:
    """The aggregate afterwards, and why it has no deliverable token if it has none."""

    resource: ProvisionedResource
    waiting: Why | None = None


class Bootstrap:
    """Mints, delivers and renews tokens."""

    def __init__(self, ports: BootstrapPorts, *, ttl: timedelta) -> None:
        self._ports = ports
        self._ttl = ttl

    async def ensure(self, resource: ProvisionedResource, view: RecordView) -> Ensured:
        """Make sure that a token can be delivered, while there is no substrate.

        Idempotency: a live token with its Secret is left as it is.
        """
        if await self._deliverable(resource, view):
            return Ensured(resource=resource)
        reference = resource.protected[0].reference
        if await self._ports.cluster.get_object(reference, view.namespace) is not None:
            return Ensured(resource=resource)
        if not await self._ports.cluster.hold_policies_bound():
            return Ensured(resource=resource, waiting=_HOLD_MISSING)
        if resource.generation and self._ports.clock.now() - resource.updated_at < MINT_PAUSE:
            return Ensured(resource=resource, waiting=_PAUSE)
        return Ensured(resource=await self._mint(resource, view))

    async def start_window(self, resource: ProvisionedResource) -> None:
        """Start the window anew: the substrate is ready."""
        if resource.bootstrap_token_id is not None:
            await self._ports.tokens.extend(resource.bootstrap_token_id, ttl=self._ttl)

    async def renew(self, resource: ProvisionedResource) -> None:
        """Keep the window open while the node may still come, up to the token's cap.

        Idempotency: a window of which more than half is left is not touched.
        """
        if resource.bootstrap_token_id is not None:
            await self._ports.tokens.extend(
                resource.bootstrap_token_id, ttl=self._ttl, unless_left=self._ttl / 2
            )

    async def _deliverable(self, resource: ProvisionedResource, view: RecordView) -> bool:
        token = resource.bootstrap_token_id
        if token is None or await self._ports.tokens.state(token) is not BootstrapState.ISSUED:
            return False
        name = names.token_secret_name(view.name, resource.generation)
        return await self._ports.cluster.token_secret_exists(view.namespace, name)

    async def _mint(self, resource: ProvisionedResource, view: RecordView) -> ProvisionedResource:
        """Mint the next generation: claim it, issue, remember the token, deliver it.

        No generation is ever minted twice, because only one writer's claim succeeds.
        """
        repository = self._ports.repository
        now = max(self._ports.clock.now(), resource.updated_at)
        claimed = replace(resource, generation=resource.generation + 1, updated_at=now)
        claimed = await repository.update(claimed)
        token = await self._ports.tokens.issue(
            claimed, generation=claimed.generation, ttl=self._ttl
        )
        issued = await repository.update(replace(claimed, bootstrap_token_id=token.id))
        name = names.token_secret_name(view.name, issued.generation)
        await self._ports.cluster.create_token_secret(view.raw, name=name, token=token)
        return issued
