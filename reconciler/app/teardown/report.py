"""Reports the progress of a teardown on its record.

Gathering the facts of a terminating record's status.
"""

from __future__ import annotations

from typing import Any, Final

from function.contract.conditions import Reason
from function.contract.record import Node
from function.contract.strategy import BootstrapState, Phase, SubstrateState
from reconciler.app.status import publishing
from reconciler.app.status.publishing import Publisher
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.ports.registration import AllocationLostError, StoreUnavailableError
from reconciler.ports.store.aggregates import MeshRefusedError, NodeDeregistrar, TokenIssuer

MESH_FAILURES: Final = (
    OSError,
    TimeoutError,
    StoreUnavailableError,
    AllocationLostError,
    MeshRefusedError,
)
"""What the identity side may answer instead of doing what it was asked."""

_FORCE_RELEASED: Final = Explanation(
    reason=Reason.FORCE_RELEASED,
    message="Its deregistration was skipped by the force-release annotation.",
)


_UNREADABLE_WAY_OUT: Final = (
    "This has failed past its deadline and is being retried. Fix the cause of the failure: the "
    "spec of this record cannot be read, so the force-release annotation has no effect."
)


class TeardownReport:
    """Writes status and Events of a terminating record; nothing where the record is gone."""

    def __init__(
        self, publisher: Publisher, *, nodes: NodeDeregistrar, tokens: TokenIssuer
    ) -> None:
        self.publisher = publisher
        self._nodes = nodes
        self._tokens = tokens

    async def announce(self, resource: ProvisionedResource, view: RecordView | None) -> None:
        """Tell that deregistering begins. Idempotency: until the status says so."""
        if view is not None and view.status.get("phase") != Phase.DEREGISTERING:
            await self.publisher.phase_event(view, resource)

    async def overdue(self, raw: dict[str, Any], failure: str) -> None:
        """Say on a record whose spec cannot be read what fails past its deadline."""
        message = f"{failure} {_UNREADABLE_WAY_OUT}"
        await self.publisher.overdue(
            raw, Explanation(reason=Reason.DEREGISTRATION_OVERDUE, message=message)
        )

    async def publish(
        self,
        resource: ProvisionedResource,
        view: RecordView | None,
        why: Explanation | None,
        *,
        absent: bool = False,
        stalled: bool = False,
    ) -> None:
        """Write the record's status if it differs.

        Args:
            resource: The aggregate.
            view: Its record; None when it is gone.
            why: What is waited for.
            absent: The function must drop the substrate; once said, it stays said.
            stalled: Only an operator can fix what is waited for.
        """
        if view is None:
            return
        node, silent = await self._node(resource, view)
        facts = StatusFacts(
            resource=resource,
            waiting=why,
            stall=why if stalled else None,
            orphaned=view.controller_uid is None,
            bootstrap=await self._bootstrap(resource, view),
            node=node,
            mesh_silent=silent,
            force_release=_force_release(resource, view),
            provider_config=publishing.provider_config_of(view),
            substrate_absent=absent or view.status.get("substrate") == SubstrateState.ABSENT,
        )
        await self.publisher.publish(view, facts)

    async def _bootstrap(self, resource: ProvisionedResource, view: RecordView) -> BootstrapState:
        """Show the token's state; where nobody tells it, what the status showed last."""
        token = resource.bootstrap_token_id
        if token is None:
            return BootstrapState.NONE
        try:
            return await self._tokens.state(token)
        except MESH_FAILURES:
            shown = (view.status.get("bootstrap") or {}).get("state")
            return BootstrapState.NONE if shown is None else BootstrapState(shown)

    async def _node(
        self, resource: ProvisionedResource, view: RecordView
    ) -> tuple[Node | None, bool]:
        """Show the live node; where the mesh does not tell, what the status showed last.

        Returns:
            The node, and whether the mesh does not tell.
        """
        token = resource.bootstrap_token_id
        if token is None:
            return None, False
        try:
            found = await self._nodes.find_node(token)
        except MESH_FAILURES:
            shown = view.status.get("node")
            return None if shown is None else Node.model_validate(shown), True
        return None if found is None else publishing.node(found), False


def _force_release(resource: ProvisionedResource, view: RecordView) -> Explanation | None:
    if resource.force_released_at is not None:
        return _FORCE_RELEASED
    return view.force_release if isinstance(view.force_release, Explanation) else None
