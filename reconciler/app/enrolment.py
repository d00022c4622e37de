"""Nodes register and report: the two calls of the node listener.

Belongs here: the order of effects around one transaction. Not here: deciding
(`domain.identity`), HTTP, SQL. A node's secret key exists here once, on its way to the
reply. Source: contracts §1.3 to §1.6, design §5 "Tokens".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from reconciler.domain.broker import ids
from reconciler.domain.identity import heartbeat, node_key, registration, registration_body
from reconciler.domain.identity.denial import Denial, denial, rate_limited
from reconciler.domain.identity.heartbeat import HeartbeatBody, KnownNode
from reconciler.domain.identity.registration import Admit, Readmit, RegistrationFacts
from reconciler.domain.identity.registration_body import RegistrationBody, RegistrationRequest
from reconciler.ports.common import Clock
from reconciler.ports.identity import (
    AllocationLostError,
    Budget,
    DeniedRegistration,
    EnrolmentStore,
    NewNode,
    Registered,
    SecretSource,
    StoreUnavailableError,
)

ATTEMPTS: Final = 3
"""Tries for an address: the Domain's row is locked, so that losing even once is rare."""

_log = logging.getLogger(__name__)


class NodeIDSource(Protocol):
    """Where nodes' ids come from."""

    def node_id(self) -> ids.NodeID:
        """Mint a UUIDv7."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentPorts:
    """The collaborators of enrolment.

    Attributes:
        project_budget: Registrations per Project; only a known token spends from it, so
            nobody can use up another Project's.
    """

    store: EnrolmentStore
    secrets: SecretSource
    ids: NodeIDSource
    clock: Clock
    project_budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What one transaction came to, for after its commit."""

    answer: Registered | Denial
    facts: RegistrationFacts


class Enrolment:
    """Implements `ports.identity.NodeService`.

    Args:
        ports: Its collaborators.
        on_registered: Called after each commit with the resource whose node came; must
            not block and must not raise.
    """

    def __init__(
        self,
        ports: EnrolmentPorts,
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
        long as it never reported; its former key is void.
        """
        request = registration_body.read(body)
        if isinstance(request, Denial):
            await self._audit(request, None, None, remote_address)
            return request
        try:
            outcome = await self._register(request)
        except StoreUnavailableError:
            _log.warning("store_unavailable during registration")
            return denial("store_unavailable")
        token = outcome.facts.token
        if isinstance(outcome.answer, Denial):
            await self._audit(outcome.answer, request, outcome.facts, remote_address)
        elif token is not None:
            self._on_registered(token.provisioned_resource_id)
        return outcome.answer

    async def authenticate(
        self, credential: str | None, *, path_node: ids.NodeID | None
    ) -> ids.NodeID | Denial:
        """Return the node that a bearer proves, or why it proves none.

        Args:
            credential: The bearer's text; None when the request has none.
            path_node: The node that the path names; None for what is no UUID.
        """
        bearer = None if credential is None else node_key.parse_bearer(credential)
        try:
            stored = (
                None if bearer is None else await self._ports.store.find_credential(bearer.node_id)
            )
        except StoreUnavailableError:
            return denial("store_unavailable")
        known = None
        if stored is not None:
            known = KnownNode(nsk_digest=stored.nsk_digest, deregistered=stored.deregistered)
        refused = heartbeat.authenticate(bearer, known, path_node=path_node)
        if refused is not None or bearer is None:
            return refused or denial("unauthorized")
        return bearer.node_id

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
        except StoreUnavailableError:
            return denial("store_unavailable")
        return denial("node_deregistered") if at is None else at

    async def _register(self, request: RegistrationRequest) -> _Outcome:
        unknown = RegistrationFacts(token=None)
        project = await self._ports.store.find_project(request.token_digest)
        if project is None:
            return _Outcome(answer=denial("token_unknown"), facts=unknown)
        wait_s = self._ports.project_budget.take(str(project))
        if wait_s is not None:
            return _Outcome(answer=rate_limited(wait_s), facts=unknown)
        for _ in range(ATTEMPTS):
            try:
                return await self._attempt(request)
            except AllocationLostError:
                continue
        return _Outcome(answer=denial("allocator_contention"), facts=RegistrationFacts(token=None))

    async def _attempt(self, request: RegistrationRequest) -> _Outcome:
        nsk = self._ports.secrets.node_secret()
        async with self._ports.store.registration() as transaction:
            facts = await transaction.facts(request)
            match registration.judge(request, facts):
                case Denial() as refused:
                    return _Outcome(answer=refused, facts=facts)
                case Readmit(token=token, node_id=node_id):
                    await transaction.readmit(node_id, nsk_digest=node_key.digest(nsk))
                case Admit(token=token, mesh_ip=mesh_ip):
                    node_id = self._ports.ids.node_id()
                    node = NewNode(
                        id=node_id,
                        token=token,
                        mesh_ip=mesh_ip,
                        nsk_digest=node_key.digest(nsk),
                    )
                    await transaction.admit(request, node)
            mesh = await transaction.mesh(token.domain_id, node_id=node_id)
        registered = Registered(node_id=node_id, nsk=nsk, mesh=mesh)
        return _Outcome(answer=registered, facts=facts)

    async def _audit(
        self,
        refused: Denial,
        request: RegistrationRequest | None,
        facts: RegistrationFacts | None,
        remote_address: str,
    ) -> None:
        token = None if facts is None else facts.token
        _log.info("registration_denied code=%s status=%d", refused.code, refused.status)
        entry = DeniedRegistration(
            code=refused.code,
            status=refused.status,
            remote_address=remote_address,
            project_id=None if request is None else request.project_id,
            token_id=None if token is None else token.id,
        )
        try:
            await self._ports.store.record_denial(entry)
        except StoreUnavailableError:
            _log.warning("store_unavailable during audit code=%s", refused.code)
