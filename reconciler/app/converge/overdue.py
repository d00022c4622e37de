"""Explains a substrate that takes longer than its limit.

The live reads below a substrate that is late, bounded and seldom. It only reads, and only
what is late; the machine may still come, and then the stall ends. Source:
docs/decisions/0021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from function.contract.conditions import ConditionType, Reason, find
from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from reconciler.domain.aggregate.children import DEPTH_MAX
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.record import unready
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.record.unready import LOOKS_MAX, UnreadyObject
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.cluster.health import Health, HealthReader
from reconciler.ports.cluster.substrates import KindNotServedError, NotAllowedError
from reconciler.ports.store.aggregates import BrokerRepository

_DUE: Final = frozenset({Phase.PENDING, Phase.PROVISIONING})
_SOON_S: Final = 1.0
"""The shortest wait for a deadline: the store's clock and ours need not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueResult:
    """The status of an overdue aggregate, and the seconds until the next look; None: never."""

    facts: StatusFacts
    again: float | None = None


class Overdue:
    """Judges the substrates of one management cluster.

    Args:
        repository: Tells for how long one has been due.
        health: Reads what is below it.
        catalog: Has the blueprints' own limits.
        limit: How long a substrate may take where its blueprint does not say.
    """

    def __init__(
        self,
        repository: BrokerRepository,
        health: HealthReader,
        catalog: Catalog,
        *,
        limit: timedelta,
    ) -> None:
        self._repository = repository
        self._health = health
        self._catalog = catalog
        self._limit = limit

    async def judge(
        self, resource: ProvisionedResource, view: RecordView, facts: StatusFacts
    ) -> OverdueResult:
        """Return the facts of a reconcile, with a stall where the substrate is late.

        What has a name already keeps it. That its token has ended has none: it ended because
        the substrate did not come.

        Idempotency: on an unchanged world the stall is the same.
        """
        ended = facts.stall is not None and facts.stall.reason == Reason.TOKEN_EXPIRED
        named = facts.waiting is not None or (facts.stall is not None and not ended)
        if named or resource.phase not in _DUE or resource.provisioning_since is None:
            return OverdueResult(facts=facts)
        took = await self._repository.provisioning_for(resource.id)
        if took is None:
            return OverdueResult(facts=facts)
        limit = self._limit_of(resource)
        late = took - limit
        if late < timedelta() and not ended:
            return OverdueResult(facts=facts, again=max(_SOON_S, -late.total_seconds()))
        why = await self._why(resource, view, limit=limit, ended=ended)
        again = unready.next_look(max(late, timedelta()))
        return OverdueResult(facts=replace(facts, stall=why), again=again.total_seconds())

    def _limit_of(self, resource: ProvisionedResource) -> timedelta:
        declared = resource.accepted.blueprint
        blueprint = None if declared is None else self._catalog.blueprint(declared.name)
        own = None if blueprint is None else blueprint.provisioning_limit
        return self._limit if own is None else own

    async def _why(
        self, resource: ProvisionedResource, view: RecordView, *, limit: timedelta, ended: bool
    ) -> Explanation:
        said = find(view.status, ConditionType.STALLED)
        exists = resource.phase is Phase.PROVISIONING
        root = resource.substrate.reference if exists else _above(view)
        return unready.explain(
            await self._look(root, view.namespace, depth=0 if exists else -1),
            limit=limit,
            exists=exists,
            ended=ended,
            before="" if said is None else said.message,
        )

    async def _look(
        self, root: SubstrateReference, namespace: str, *, depth: int
    ) -> list[UnreadyObject]:
        """Read an object and what is below it, level by level, LOOKS_MAX objects at most."""
        seen: list[UnreadyObject] = []
        level, left = [root], LOOKS_MAX
        while level and left and depth <= DEPTH_MAX:
            below: list[SubstrateReference] = []
            looked, left = level[:left], left - len(level[:left])
            for reference in looked:
                found = await self._read(reference, namespace, depth, seen)
                below += () if found is None else found.below
            # Above the substrate only the XR itself is asked.
            level, depth = ([] if depth < 0 else below), depth + 1
        return seen

    async def _read(
        self, reference: SubstrateReference, namespace: str, depth: int, seen: list[UnreadyObject]
    ) -> Health | None:
        try:
            found = await self._served(reference, namespace)
        except (KindNotServedError, NotAllowedError) as error:
            served = isinstance(error, NotAllowedError)
            seen.append(
                UnreadyObject(reference=reference, depth=depth, conditions=None, served=served)
            )
            return None
        if found is not None:
            seen.append(
                UnreadyObject(reference=reference, depth=depth, conditions=found.conditions)
            )
        return found

    async def _served(self, reference: SubstrateReference, namespace: str) -> Health | None:
        try:
            return await self._health.health(reference, namespace)
        except KindNotServedError as error:
            if error.elsewhere is None:
                raise
            other = reference.model_copy(update={"api_version": error.elsewhere})
        return await self._health.health(other, namespace)


def begins(resource: ProvisionedResource, *, waiting: Explanation | None) -> bool:
    """Tell whether the time of a substrate begins: nothing of ours is missing any more.

    Of a node, the delivery of its token and the first sight of its substrate said so already.

    Args:
        resource: The aggregate.
        waiting: Why nothing can be composed at the moment.
    """
    due = resource.phase is Phase.PROVISIONING or (
        resource.phase is Phase.PENDING and waiting is None
    )
    return due and resource.provisioning_since is None


def _above(view: RecordView) -> SubstrateReference:
    xr = view.xr
    return SubstrateReference(api_version=xr.api_version, kind=xr.kind, name=xr.name)
