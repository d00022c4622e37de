"""Nodes register and report: the two calls of the node listener.

The order of effects around one registration. A node's secret key exists here once, on its
way to the reply. Source: contracts §1.3 to §1.6, design §5 "Tokens".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from reconciler.domain.aggregate import ids
from reconciler.domain.identity import heartbeat, node_key, registration, registration_body
from reconciler.domain.identity.denial import Denial, denial, rate_limited
from reconciler.domain.identity.heartbeat import HeartbeatBody, KnownNode
from reconciler.domain.identity.node_key import NodeBearer
from reconciler.domain.identity.registration import Admit, Decision, Readmit, RegistrationFacts
from reconciler.domain.identity.registration_body import RegistrationBody, RegistrationRequest
from reconciler.ports.clock import Clock
from reconciler.ports.registration import (
    AllocationLostError,
    Budget,
    DeniedRegistration,
    EnrolmentStore,
    MeshView,
    NewNode,
    NodeCredential,
    NodeState,
    Registered,
    RegistrationUnit,
    SecretSource,
    StoreUnavailableError,
)

ATTEMPTS: Final = 3
"""Times a request is judged: each loss was another's gain, so that losing thrice is rare."""

_log = logging.getLogger(__name__)


class NodeIDSource(Protocol):
    """The source of nodes' ids."""

    def node_id(self) -> ids.NodeID:
        """Mint a UUIDv7."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationPorts:
    """The collaborators of enrolment.

    Attributes:
        project_budget: Registrations per Project; only who would get a node spends from it,
            so nobody can use up another Project's, nor an old token its own.
    """

    store: EnrolmentStore
    secrets: SecretSource
    ids: NodeIDSource
    clock: Clock
    project_budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What one attempt came to, for after its commit."""

    answer: Registered | Denial
    resource: ids.ProvisionedResourceID | None = None


@dataclass(slots=True, kw_only=True)
class _Attempts:
    """One call through all of its attempts, and what it was last judged by."""

    request: RegistrationRequest
    remote_address: str
    facts: RegistrationFacts | None = None
    paid: bool = False


class RegistrationService:
    """Implements `ports.registration.NodeService`.

    Args:
        ports: Its collaborators.
        on_registered: Called after each commit with the resource whose node came; must
            not block and must not raise.
    """

    def __init__(
        self,
        ports: RegistrationPorts,
        *,
        on_registered: Callable[[ids.ProvisionedResourceID], None],
    ) -> None:
        self._ports = ports
        self._on_registered = on_registered

    async def register(self, body: RegistrationBody, *, remote_address: str) -> Registered | Denial:
        """Register a node.

        Returns:
            The node, or why not; a denial had no effect but its line in the audit.

        Idempotency: the same token, key and nonce again give the same node a fresh key as
        long as it never reported. Of all these keys the one that it reports with counts.
        """
        request = registration_body.read(body)
        if isinstance(request, Denial):
            _log.info("registration_denied code=%s status=%d", request.code, request.status)
            await self._audit(_entry(request, None, None, remote_address))
            return request
        call = _Attempts(request=request, remote_address=remote_address)
        try:
            outcome = await self._register(call)
        except StoreUnavailableError:
            _log.warning("store_unavailable during registration")
            return denial("store_unavailable")
        if isinstance(outcome.answer, Denial):
            answer = outcome.answer
            _log.info("registration_denied code=%s status=%d", answer.code, answer.status)
        elif outcome.resource is not None:
            self._on_registered(outcome.resource)
        return outcome.answer

    async def authenticate(
        self, credential: str | None, *, path_node: ids.NodeID | None = None, any_node: bool = False
    ) -> ids.NodeID | Denial:
        """Return the node that a bearer proves, or why it proves none.

        The first time that it proves one, that node has reported: with this key, which is its
        only one from then on.

        Args:
            credential: The bearer's text; None when the request has none.
            path_node: The node that the path names; None for what is no UUID.
            any_node: The path names no node: every live one may ask.
        """
        bearer = None if credential is None else node_key.parse_bearer(credential)
        if bearer is None:
            return denial("unauthorized")
        named = bearer.node_id if any_node else path_node
        try:
            for _ in range(ATTEMPTS):
                stored = await self._ports.store.find_credential(bearer.node_id)
                known = None if stored is None else _known(stored)
                refused = heartbeat.authenticate(bearer, known, path_node=named)
                if refused is not None:
                    return refused
                if await self._reports(bearer, known):
                    return bearer.node_id
        except (StoreUnavailableError, AllocationLostError):
            _log.warning("store_unavailable during authentication")
        return denial("store_unavailable")

    async def heartbeat(self, node_id: ids.NodeID, body: HeartbeatBody) -> datetime | Denial:
        """Note that an authenticated node is alive.

        Returns:
            When it was accepted, by the store's clock.
        """
        refused = heartbeat.check(body, now=self._ports.clock.now())
        if refused is not None:
            return refused
        try:
            at = await self._ports.store.record_heartbeat(
                node_id, binary_version=body.binary_version
            )
        except (StoreUnavailableError, AllocationLostError):
            return denial("store_unavailable")
        return denial("node_deregistered") if at is None else at

    async def state(self, node_id: ids.NodeID) -> NodeState | Denial:
        """Return what an authenticated node pulls."""
        try:
            state = await self._ports.store.read_state(node_id)
        except (StoreUnavailableError, AllocationLostError):
            return denial("store_unavailable")
        return denial("node_deregistered") if state is None else state

    async def _reports(self, bearer: NodeBearer, known: KnownNode | None) -> bool:
        """Make sure that a node has reported; False when something else happened meanwhile."""
        if known is not None and known.reported:
            return True
        return await self._ports.store.record_report(bearer.node_id, nsk_digest=bearer.nsk_digest)

    async def _register(self, call: _Attempts) -> _Outcome:
        for _ in range(ATTEMPTS):
            try:
                return await self._attempt(call)
            except AllocationLostError:
                continue
        refused = denial("allocator_contention")
        await self._audit(_entry(refused, call.request, call.facts, call.remote_address))
        return _Outcome(answer=refused)

    async def _attempt(self, call: _Attempts) -> _Outcome:
        request = call.request
        async with self._ports.store.registration() as unit:
            call.facts = facts = await unit.facts(request)
            decision = self._limit(call, registration.judge(request, facts))
            if isinstance(decision, Denial):
                entry = _entry(decision, request, facts, call.remote_address)
                await unit.record_denial(entry)
                return _Outcome(answer=decision)
            answer = await self._enter(unit, call, decision)
        if isinstance(decision, Readmit):
            _log.info(
                "node_readmitted node=%s token=%s address=%s",
                decision.node_id, decision.token.id, call.remote_address,
            )  # fmt: skip
        return _Outcome(answer=answer, resource=decision.token.provisioned_resource_id)

    def _limit(self, call: _Attempts, decision: Decision) -> Decision:
        if isinstance(decision, Denial) or call.paid:
            return decision
        call.paid = True
        wait_s = self._ports.project_budget.take(str(decision.token.project_id))
        return decision if wait_s is None else rate_limited(wait_s)

    async def _enter(
        self,
        unit: RegistrationUnit,
        call: _Attempts,
        decision: Admit | Readmit,
    ) -> Registered:
        nsk = self._ports.secrets.node_secret()
        digest = node_key.digest(nsk)
        mesh: MeshView
        match decision:
            case Readmit(token=token, node_id=node_id):
                mesh = await unit.readmit(
                    token, node_id, nsk_digest=digest, remote_address=call.remote_address
                )
            case Admit(token=token):
                node_id = self._ports.ids.node_id()
                node = NewNode(id=node_id, token=token, nsk_digest=digest)
                mesh = await unit.admit(call.request, node)
        return Registered(node_id=node_id, nsk=nsk, mesh=mesh)

    async def _audit(self, entry: DeniedRegistration) -> None:
        try:
            await self._ports.store.record_denial(entry)
        except StoreUnavailableError:
            _log.warning("store_unavailable during audit code=%s", entry.code)


def _known(stored: NodeCredential) -> KnownNode:
    return KnownNode(
        nsk_digest=stored.nsk_digest,
        other_nsk_digests=stored.other_nsk_digests,
        deregistered=stored.deregistered,
        reported=stored.reported,
    )


def _entry(
    refused: Denial,
    request: RegistrationRequest | None,
    facts: RegistrationFacts | None,
    remote_address: str,
) -> DeniedRegistration:
    token = None if facts is None else facts.token
    prior = None if facts is None else facts.prior
    detail = None
    if request is not None and prior is not None and refused.code == "token_consumed":
        detail = registration.repeat_detail(request, prior)
    return DeniedRegistration(
        code=refused.code,
        status=refused.status,
        remote_address=remote_address,
        project_id=None if request is None else request.project_id,
        token_id=None if token is None else token.id,
        node_id=None if prior is None else prior.node_id,
        detail=detail,
    )
