"""Gathers the facts about a machine whose node is overdue.

The live reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from function.contract.record import SubstrateReference
from function.contract.strategy import BootstrapState, SubstrateState
from reconciler.app.guard import any_version
from reconciler.app.registration.bootstrap import BootstrapPorts, BootstrapTokens
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity.token_life import TokenLife
from reconciler.domain.protection import protection
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.replacement import replacement
from reconciler.domain.replacement.replacement import (
    NodePresence,
    ReplacementFacts,
    ReplacementStep,
)
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.store.aggregates import (
    NodeDeregistrar,
    RegisteredNode,
)

_LIVE: Final = frozenset({BootstrapState.ISSUED, BootstrapState.EXPIRED})
"""States that a revocation ends; a window that closed may be opened again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPorts(BootstrapPorts):
    """The collaborators of replacing machines: those of bootstrapping, and the mesh.

    Attributes:
        reachable: For how long nodes could get through to us without a break.
    """

    nodes: NodeDeregistrar
    reachable: Callable[[], timedelta]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementObservation:
    """The result of a look; `live` is None also where it was not asked for.

    `reference` is what `live` can be written by: its version may not be the remembered one.
    """

    situation: ReplacementFacts
    life: TokenLife
    node: RegisteredNode | None
    live: LiveObject | None
    reference: SubstrateReference


class ReplacementObserver:
    """Looks at one aggregate at a time."""

    def __init__(
        self, ports: ReplacementPorts, bootstrap: BootstrapTokens, *, timeout: timedelta
    ) -> None:
        self._ports = ports
        self._bootstrap = bootstrap
        self._timeout = timeout

    async def mesh(self, resource: ProvisionedResource) -> tuple[TokenLife, RegisteredNode | None]:
        """Return the aggregate's tokens, and its node if one is in the mesh.

        Tokens are read before the node: one that came in between is seen.
        """
        token = resource.bootstrap_token_id
        life = await self._bootstrap.look(resource)
        return life, None if token is None else await self._ports.nodes.find_node(token)

    async def look(
        self, resource: ProvisionedResource, view: RecordView, *, refused: bool
    ) -> ReplacementObservation:
        """Return everything that decides.

        Args:
            resource: The aggregate.
            view: Its record.
            refused: Its declaration as it stands is not accepted.
        """
        under_way = resource.recreating_since is not None
        life, node = await self.mesh(resource)
        reference, live = resource.substrate.reference, None
        if under_way:
            reference, live = await self.find(resource, view)
        observed = view.spec.observed
        there = live is not None if under_way else observed.exists
        now = self._ports.clock.now()
        age = None if node is None else node.age
        waited = replacement.waited(resource, node_age=age, now=now)
        patience = replacement.patience(resource, self._timeout)
        situation = ReplacementFacts(
            under_way=under_way,
            node=_lookup(node),
            overdue=waited is not None and waited >= patience,
            fair=self._ports.reachable() >= patience,
            departed=node is None and _departed(resource, life, now),
            recreate=replacement.wanted(resource),
            left=resource.recreations < replacement.policy(resource).attempts,
            free=self._ports.steady()
            and not refused
            and view.controller_uid is not None
            and resource.node_expected
            and not resource.uninjected(observed, exists=there),
            spent=not any(one.state in _LIVE for one in life.generations),
            let_go=under_way and resource.substrate.released,
            there=there,
            acknowledged=view.spec.released and is_absent(view),
        )
        look = ReplacementObservation(
            situation=situation, life=life, node=node, live=live, reference=reference
        )
        # What costs a call is asked where it decides.
        decides = under_way or replacement.decide(situation) is ReplacementStep.BEGIN
        if decides and situation.free:
            situation = replace(situation, free=await self._composes(view))
        return replace(look, situation=situation)

    async def _composes(self, view: RecordView) -> bool:
        xr = await self._ports.cluster.substrates.get_xr_facts(view.xr, view.namespace)
        return xr.exists and not xr.terminating and not xr.paused

    async def find(
        self, resource: ProvisionedResource, view: RecordView
    ) -> tuple[SubstrateReference, LiveObject | None]:
        """Return its substrate, if it is there and ours, and the reference that serves it.

        Raises:
            KindNotServedError: No version of its group serves its kind.
            NotAllowedError: It may not be read.
        """
        remembered = resource.substrate.reference
        reference, live = await any_version.find(self._ports.cluster, remembered, view.namespace)
        if live is not None and not protection.is_ours(live.controller, resource.accepted.xr):
            return reference, None
        return reference, live


def is_absent(view: RecordView) -> bool:
    """Tell whether the function was told to compose no substrate."""
    return bool(view.status.get("substrate") == SubstrateState.ABSENT)


def _departed(resource: ProvisionedResource, life: TokenLife, now: datetime) -> bool:
    """Tell whether a node came with the newest token, now that none is in the mesh.

    One that was there before a replacement began was taken out by it. Both ages are measured,
    each by the clock that dated its beginning.
    """
    if life.state is not BootstrapState.CONSUMED:
        return False
    if resource.recreating_since is None:
        return True
    consumed = [one.consumed_at for one in life.generations if one.consumed_at is not None]
    return life.now - max(consumed) < now - resource.recreating_since


def _lookup(node: RegisteredNode | None) -> NodePresence:
    if node is None:
        return NodePresence.NONE
    return NodePresence.REPORTED if node.reported else NodePresence.SILENT
