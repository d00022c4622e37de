"""The bootstrap of one aggregate: a token of the right generation, delivered and kept alive.

When a generation is minted, its delivery, the renewal of its window. A crash after any
effect leaves a generation that the next reconcile uses or succeeds with a new one. Source:
design §5 "Tokens"; docs/decisions/0004.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from function.contract import names
from function.contract.conditions import Reason
from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity.token_life import TokenAction, TokenLife, TokenLifeFacts, decide
from reconciler.domain.record.record_view import RecordView
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.store.aggregates import BrokerRepository, TokenIssuer

_HOLD_MISSING: Final = Explanation(
    reason=Reason.HOLD_MISSING,
    message="No token is issued: an admission policy is missing, not bound to all objects, or of "
    "another version; apply deploy/policies.",
)
_FROZEN: Final = Explanation(
    reason=Reason.FROZEN,
    message="No token is issued: the reconciler is frozen, because its view of this management "
    "cluster is doubtful; the reconciler's log and /metrics name the cause.",
)
_PAUSE: Final = Explanation(
    reason=Reason.WAITING_FOR_TOKEN,
    message="The last token could not be delivered; the next one is issued in half a minute.",
)
_EXHAUSTED: Final = Explanation(
    reason=Reason.GENERATIONS_EXHAUSTED,
    message="No token is issued: all token generations of this record are used up, so something "
    "keeps revoking its tokens or deleting their Secrets. Stop that, then delete the XR and apply "
    "it again.",
)
_RECREATE: Final = "delete its ProvisioningRecord to have the machine recreated"

_STRANDED: Final = {
    BootstrapState.EXPIRED: Explanation(
        reason=Reason.TOKEN_EXPIRED,
        message=f"The token expired before the node registered; {_RECREATE}.",
    ),
    BootstrapState.REVOKED: Explanation(
        reason=Reason.TOKEN_REVOKED,
        message=f"The token was revoked before the node registered; {_RECREATE}.",
    ),
}

_CLAIMS_MAX: Final = 2
"""Texts that are tried in one reconcile: what a crash left under a generation's name is one."""

_TAKEN_OUT: Final = Explanation(
    reason=Reason.DEREGISTERED_ELSEWHERE,
    message="The node was deregistered outside of this record, by an operator or in the database. "
    f"The machine's key is no longer valid; {_RECREATE}.",
)

_WITH_SUBSTRATE: Final = frozenset({Phase.PROVISIONING, Phase.ENROLLING})

_WAITING: Final = {
    TokenAction.AWAIT_POLICIES: _HOLD_MISSING,
    TokenAction.AWAIT_PAUSE: _PAUSE,
    TokenAction.EXHAUSTED: _EXHAUSTED,
}
_WANTS_A_TOKEN: Final = frozenset({TokenAction.MINT, *_WAITING})

FOR_A_PERSON: Final = frozenset({_EXHAUSTED.reason})
"""What is waited for that no time and no other object brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapPorts:
    """The collaborators of bootstrapping.

    Attributes:
        steady: Whether what is seen of the management cluster is believed.
    """

    repository: BrokerRepository
    cluster: ManagementCluster
    tokens: TokenIssuer
    clock: Clock
    steady: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsuredBootstrap:
    """The aggregate and its tokens afterwards, and why none can be delivered if none can."""

    resource: ProvisionedResource
    life: TokenLife
    waiting: Explanation | None = None


class BootstrapTokens:
    """Mints, delivers and renews tokens."""

    def __init__(self, ports: BootstrapPorts, *, ttl: timedelta) -> None:
        self._ports = ports
        self._ttl = ttl

    async def look(self, resource: ProvisionedResource) -> TokenLife:
        """Return the resource's tokens; one that never had any is not asked about."""
        if not resource.generation:
            return TokenLife(generations=(), now=self._ports.clock.now())
        return await self._ports.tokens.life(resource.id)

    async def ensure(
        self,
        resource: ProvisionedResource,
        view: RecordView,
        life: TokenLife,
        *,
        closed: Explanation | None,
    ) -> EnsuredBootstrap:
        """Make sure that a token can be delivered, while there is no substrate.

        Args:
            resource: The aggregate.
            view: Its record.
            life: Its tokens.
            closed: Why nothing may be given out; None while something may.

        Idempotency: a live token with its Secret is left as it is.
        """
        situation = TokenLifeFacts(
            state=life.state,
            delivered=await self._delivered(resource, view, life),
            substrate=False,
            rested=life.rested,
            open=closed is None,
            exhausted=resource.exhausted and not _unused(resource, life),
        )
        # What costs a call is asked only when a token would be minted.
        action = decide(situation)
        if action in _WANTS_A_TOKEN:
            situation = await self._looked(situation, resource, view)
            action = decide(situation)
        if action is TokenAction.MINT and not self._ports.steady():
            return EnsuredBootstrap(resource=resource, life=life, waiting=_FROZEN)
        if action is TokenAction.MINT:
            minted = await self._mint(resource, view, life)
            return EnsuredBootstrap(resource=minted, life=await self.look(minted))
        waits = closed if action is TokenAction.AWAIT_NAMESPACE else _WAITING.get(action)
        return EnsuredBootstrap(resource=resource, life=life, waiting=waits)

    async def start_window(self, resource: ProvisionedResource, life: TokenLife) -> TokenLife:
        """Restart the window, if the table lets it: the substrate is ready."""
        return await self._extend(resource, life, unless_left=None)

    async def renew(self, resource: ProvisionedResource, life: TokenLife) -> TokenLife:
        """Keep the window open, or open it again, while the table lets the node still come.

        Idempotency: a window of which more than half is left is not touched.
        """
        return await self._extend(resource, life, unless_left=self._ttl / 2)

    async def drop_secrets(
        self, resource: ProvisionedResource, view: RecordView, life: TokenLife
    ) -> None:
        """Delete the Secrets of all generations: nobody may register with any of them.

        Idempotency: one that is gone is success.
        """
        numbers = {resource.generation, *(one.number for one in life.generations)}
        for number in sorted(numbers - {0}):
            name = names.token_secret_name(view.name, number)
            await self._ports.cluster.token_secrets.delete_token_secret(
                view.namespace, name, owner=view.uid
            )

    async def _extend(
        self, resource: ProvisionedResource, life: TokenLife, *, unless_left: timedelta | None
    ) -> TokenLife:
        token = resource.bootstrap_token_id
        situation = TokenLifeFacts(
            state=life.state, delivered=True, substrate=True, renewable=life.renewable
        )
        if token is None or decide(situation) is not TokenAction.RENEW:
            return life
        await self._ports.tokens.extend(token, ttl=self._ttl, unless_left=unless_left)
        return life.extended()

    async def _looked(
        self, situation: TokenLifeFacts, resource: ProvisionedResource, view: RecordView
    ) -> TokenLifeFacts:
        reference = resource.substrate.reference
        there = (
            await self._ports.cluster.substrates.get_object(reference, view.namespace) is not None
        )
        # A machine that is about to be seen may carry the last token.
        if there:
            return replace(situation, substrate=True)
        problem = await self._ports.cluster.checks.hold_policies_problem()
        return replace(situation, policies=problem is None)

    async def _delivered(
        self, resource: ProvisionedResource, view: RecordView, life: TokenLife
    ) -> bool:
        if life.state is not BootstrapState.ISSUED:
            return False
        newest = life.generations[0]
        if newest.state is not BootstrapState.ISSUED or newest.number != resource.generation:
            return False
        if resource.bootstrap_token_id is None:
            return False
        name = names.token_secret_name(view.name, resource.generation)
        return await self._ports.cluster.token_secrets.token_secret_exists(view.namespace, name)

    async def _mint(
        self, resource: ProvisionedResource, view: RecordView, life: TokenLife
    ) -> ProvisionedResource:
        """Mint a token: claim its generation, deliver its text, issue it, remember it.

        The text is delivered before it opens anything: an API server that refuses the Secret
        leaves a claimed generation that was never issued, which the next try uses. What an
        earlier try left under its name carries a text that nobody knows, and goes.

        No generation is ever minted twice, because only one writer's claim succeeds, and only
        one text is in its Secret.
        """
        cluster, tokens = self._ports.cluster, self._ports.tokens
        claimed = resource if _unused(resource, life) else await self._claim(resource)
        for _ in range(_CLAIMS_MAX):
            drawn = await tokens.draw(claimed, generation=claimed.generation)
            name = names.token_secret_name(view.name, claimed.generation)
            if await cluster.token_secrets.create_token_secret(view.raw, name=name, token=drawn):
                issued = await tokens.issue(claimed, drawn, ttl=self._ttl)
                # From now on the function may compose.
                due = claimed.due(max(self._ports.clock.now(), claimed.updated_at))
                return await self._ports.repository.update(
                    replace(due, bootstrap_token_id=issued.id)
                )
            await cluster.token_secrets.delete_token_secret(view.namespace, name, owner=view.uid)
            if claimed.exhausted:
                # Its name is free by the next try, and whoever drew that text is gone.
                break
            claimed = await self._claim(claimed)
        return claimed

    async def _claim(self, resource: ProvisionedResource) -> ProvisionedResource:
        now = max(self._ports.clock.now(), resource.updated_at)
        claimed = replace(resource, generation=resource.generation + 1, updated_at=now)
        return await self._ports.repository.update(claimed)


def _unused(resource: ProvisionedResource, life: TokenLife) -> bool:
    """Tell whether the generation that was claimed last was never issued."""
    return resource.generation > max((one.number for one in life.generations), default=0)


def stranded(
    resource: ProvisionedResource, life: TokenLife, view: RecordView, *, registered: bool
) -> Explanation | None:
    """Say why the machine that is there can register no more; None while it can.

    Args:
        resource: The aggregate.
        life: Its tokens.
        view: Its record.
        registered: Whether its node is in the mesh.
    """
    if resource.bootstrap_token_id is None or resource.phase is Phase.READY:
        return None
    situation = TokenLifeFacts(
        state=life.state,
        delivered=True,
        substrate=view.spec.observed.exists,
        registered=registered,
        renewable=life.renewable,
    )
    if taken_out(resource, life, registered=registered):
        return _TAKEN_OUT
    return _STRANDED[life.state] if decide(situation) is TokenAction.STALL else None


def taken_out(resource: ProvisionedResource, life: TokenLife, *, registered: bool) -> bool:
    """Tell whether its node came and was taken out of the mesh by nobody of this process.

    Who takes a node out here has asked for the resource's end, or for its machine to be made
    anew, and that is stored before.
    """
    came = life.state is BootstrapState.CONSUMED and not registered
    asked = resource.deletion_requested_at is not None or resource.recreating_since is not None
    return came and not asked and resource.phase in _WITH_SUBSTRATE
