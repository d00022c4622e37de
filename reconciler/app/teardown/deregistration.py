"""Taking token and node out of the mesh, or giving them up on an operator's decision.

The effects of the first step of a teardown. Source: seed 001; design §2;
docs/decisions/0007.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from function.contract import names
from function.contract.conditions import ConditionType, Reason, find
from function.contract.strategy import Phase
from reconciler.app.queue.work_queue import describe
from reconciler.app.teardown.report import MESH_FAILURES, TeardownReport
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import (
    NodeDeregistrationFailedError,
    TokenRevocationFailedError,
)
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import audit
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.teardown.force_release import ForceRelease
from reconciler.ports.clock import Clock
from reconciler.ports.store.aggregates import (
    BrokerRepository,
    MeshRefusedError,
    NodeDeregistrar,
    TokenIssuer,
)

LAST_TRY_S: Final = 10.0
"""How long each last try may take: one statement's limit; the machine is gone by then and a
person waits for the record."""

_WAY_OUT: Final = (
    "This has failed past its deadline and is being retried. Fix the cause, or skip the "
    "deregistration: as a break-glass user, annotate this record with "
    f"{names.ANNOTATION_FORCE_RELEASE}=<reason>."
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """Until when token and node should be out.

    Attributes:
        clock: Tells the time.
        after: How long it may take from the deletion request on.
    """

    clock: Clock
    after: timedelta

    def is_over(self, resource: ProvisionedResource) -> bool:
        """Tell whether an aggregate's deletion was requested longer ago than that."""
        since = resource.deletion_requested_at
        return since is not None and self.clock.now() - since > self.after


class Deregistration:
    """The node's way out of the mesh."""

    def __init__(
        self,
        repository: BrokerRepository,
        tokens: TokenIssuer,
        nodes: NodeDeregistrar,
        deadline: Deadline,
        report: TeardownReport,
    ) -> None:
        self._repository = repository
        self._tokens = tokens
        self._nodes = nodes
        self._deadline = deadline
        self._report = report

    async def revoke(
        self, resource: ProvisionedResource, view: RecordView | None
    ) -> ProvisionedResource:
        """Revoke what a node could still register with, and hear a wish to give it up.

        Returns:
            The aggregate; given up where the record asks for it.

        Raises:
            TokenRevocationFailedError: It failed, and nobody gave the node up; the record's
                status says so.

        Idempotency: spent tokens stay as they are.
        """
        failure: Exception | None = None
        try:
            await self._tokens.revoke(resource.id)
        except MESH_FAILURES as error:
            failure = error
        resource = await self.honour(resource, view, stuck=failure is not None)
        if failure is None or resource.force_released_at is not None:
            return resource
        message = _failure(
            failure,
            refusal="The identity store refused to revoke the bootstrap token",
            silence="The bootstrap token is not revoked: the identity store is unreachable",
        )
        await self._tell(
            resource, view, Explanation(reason=Reason.TOKEN_REVOCATION_FAILED, message=message)
        )
        raise TokenRevocationFailedError(message) from failure

    async def honour(
        self, resource: ProvisionedResource, view: RecordView | None, *, stuck: bool = False
    ) -> ProvisionedResource:
        """Give the node up where the record's annotation asks for it.

        It counts only while there is something to skip: a node that is in the mesh, or a
        token that cannot be revoked (`stuck`). Once stored it stays, whatever happens to
        annotation and record.

        Idempotency: stored and audited once, in one transaction; the Event follows until the
        status tells it.
        """
        wish = None if view is None else view.force_release
        if view is None or not isinstance(wish, ForceRelease):
            return resource
        if resource.force_released_at is None:
            if not stuck and not await self.registered(resource):
                return resource
            now = max(self._deadline.clock.now(), resource.updated_at)
            given_up = replace(resource, force_released_at=now, updated_at=now)
            resource = await self._repository.update(given_up, audit=audit.force_release(wish))
        told = find(view.status, ConditionType.NODE_REGISTERED)
        if told is None or told.reason != Reason.FORCE_RELEASED:
            await self._report.publisher.force_released_event(view, resource, wish.reason)
        return resource

    async def registered(self, resource: ProvisionedResource) -> bool:
        """Tell whether its node is in the mesh; where the mesh does not tell, it is."""
        token = resource.bootstrap_token_id
        if token is None:
            return False
        try:
            return await self._nodes.node_registered(token)
        except MESH_FAILURES as error:
            _log.debug("node_unknown provisioned_resource_id=%s", resource.id, exc_info=error)
            return True

    async def run(self, resource: ProvisionedResource, view: RecordView | None) -> float:
        """Take the node out; what was said of a failed try stays until one succeeds.

        Returns:
            Seconds after which to come back.

        Raises:
            NodeDeregistrationFailedError: The identity side failed; nothing was touched.
        """
        # A draining record, unlike a terminating one, costs its XR's breaker tokens by a write.
        draining = view is not None and not view.terminating
        if view is not None and not draining and view.status.get("phase") != Phase.DEREGISTERING:
            message = "The node is being deregistered from the mesh."
            why = Explanation(reason=Reason.DEREGISTERING, message=message)
            await self._report.publish(resource, view, why)
        token = resource.bootstrap_token_id
        if token is None:  # pragma: no cover - no token, no node, no such decision
            return 0.0
        try:
            await self._nodes.deregister(token)
        except MESH_FAILURES as error:
            message = _failure(
                error,
                refusal="The mesh refused to deregister the node",
                silence="The node is not deregistered: the mesh is unreachable",
            )
            failed = Explanation(reason=Reason.DEREGISTRATION_FAILED, message=message)
            await self._tell(resource, view, failed)
            raise NodeDeregistrationFailedError(message) from error
        if view is not None:
            await self._report.publisher.deregistered_event(view, resource)
        return 0.0

    async def last_try(self, resource: ProvisionedResource) -> None:
        """Try once more to take out token and node that were given up; the machine is gone.

        Best effort: a failure is a warning with the ids that an operator needs. Nothing comes
        back to it afterwards.

        Idempotency: a node that is out is left as it is.
        """
        token = resource.bootstrap_token_id
        if resource.force_released_at is None or token is None:
            return
        await _last(resource, "token_left_live", self._tokens.revoke(resource.id))
        await _last(resource, "node_left_in_mesh", self._take_out(token))

    async def _tell(
        self, resource: ProvisionedResource, view: RecordView | None, failed: Explanation
    ) -> None:
        """Say what failed; past the deadline it needs an operator, though it is retried."""
        overdue = self._deadline.is_over(resource)
        if overdue:
            message = f"{failed.message} {_WAY_OUT}"
            failed = Explanation(reason=Reason.DEREGISTRATION_OVERDUE, message=message)
        await self._report.publish(resource, view, failed, stalled=overdue)

    async def _take_out(self, token: ids.BootstrapTokenID) -> None:
        if await self._nodes.find_node(token) is not None:
            await self._nodes.deregister(token)


async def _last(resource: ProvisionedResource, left: str, attempt: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(LAST_TRY_S):
            await attempt
    except MESH_FAILURES as error:
        _log.warning(
            "%s provisioned_resource_id=%s project_id=%s bootstrap_token_id=%s error=%s",
            left,
            resource.id,
            resource.project_id,
            resource.bootstrap_token_id,
            describe(error),
        )


def _failure(error: Exception, *, refusal: str, silence: str) -> str:
    what = silence
    if isinstance(error, MeshRefusedError):
        what = f"{refusal} ({error.rule})" if error.rule else refusal
    return f"{what}; nothing else was changed."
