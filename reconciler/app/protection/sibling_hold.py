"""Siblings of enrolled resources: remembered while they are listed, let go when nobody needs them.

The effects on them, at rest and after a teardown. A teardown does not wait for a sibling to
be gone: it may belong to other nodes or to an XR that lives on, and a network that hangs in
its provider must not keep a record and its XR. It does let go of them before its record
goes, because nobody else ever would. Source: design §3, `hold`; docs/decisions/0006, 0009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.app.guard import any_version
from reconciler.app.status import waiting_messages
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import protection
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.teardown.release import XRFacts
from reconciler.domain.teardown.sibling_cleanup import (
    SiblingCleanup,
    SiblingFacts,
    SiblingStep,
    next_sibling_step,
)
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError, LiveObject
from reconciler.ports.store.aggregates import BrokerRepository

AGAIN_S: Final = 5.0
"""How soon a sibling that is not settled is looked at again: one GET, for two minutes at most
while its XR composes."""


class SiblingHold:
    """Keeps and releases siblings."""

    def __init__(
        self, repository: BrokerRepository, cluster: ManagementCluster, clock: Clock
    ) -> None:
        self._repository = repository
        self._cluster = cluster
        self._clock = clock

    async def follow(
        self, resource: ProvisionedResource, view: RecordView
    ) -> tuple[ProvisionedResource, float | None]:
        """Release siblings that a record lists no longer, and forget them once they are free.

        Returns:
            The aggregate afterwards, and when to look again; None when nothing is left.

        Idempotency: one without the hold is forgotten, one with it loses it once a look.
        """
        if not resource.enrolled:
            return resource, None
        await self._hold_below(resource, view)
        strays = protection.unlisted(resource.protected, view.spec.substrate)
        forgotten = [item for item in strays if await self._is_free(resource, item.reference)]
        if forgotten:
            kept = tuple(item for item in resource.protected if item not in forgotten)
            resource = await self._repository.update(replace(resource, protected=kept))
        return resource, AGAIN_S if len(forgotten) < len(strays) else None

    async def _hold_below(self, resource: ProvisionedResource, view: RecordView) -> None:
        """Mark what is itself a composite, so that nothing below it goes before the node.

        Costs one GET per composite and look; leaves cost nothing.
        """
        strays = protection.unlisted(resource.protected, view.spec.substrate)
        namespace = resource.key.namespace
        for item in resource.protected:
            if item in strays or not await self._cluster.substrates.is_composite(item.reference):
                continue
            reference, live = await any_version.find(self._cluster, item.reference, namespace)
            if live is None or live.below_held or live.terminating:
                continue
            if protection.is_ours(live.controller, resource.accepted.xr):
                await self._cluster.substrates.hold_below(
                    reference, namespace, live=live, handle=resource.xr_name
                )

    async def part(
        self, resource: ProvisionedResource, *, listed: Sequence[SubstrateReference] = ()
    ) -> tuple[ProvisionedResource, float | None]:
        """Do one look at the siblings of an aggregate that is Deleted.

        Args:
            resource: The aggregate, stored as Deleted, so that of two that end together the
                later one finds nobody else in need.
            listed: What its record listed last, which may be more than was ever accepted.

        Returns:
            The aggregate afterwards, and when to look again; None when all are settled.

        Idempotency: settled ones are remembered and left alone.
        """
        listed = listed if resource.enrolled else ()
        siblings = [*resource.siblings, *_unknown(resource, listed)]
        if all(item.released for item in siblings):
            return resource, None
        xr = await self._cluster.substrates.get_xr_facts(_any_uid(resource), resource.key.namespace)
        looked = [
            item if item.released else replace(item, released=await self._look(resource, item, xr))
            for item in siblings
        ]
        protected = (resource.substrate, *looked)
        if protected != resource.protected:
            resource = await self._repository.update(replace(resource, protected=protected))
        return resource, None if all(item.released for item in looked) else AGAIN_S

    async def _is_free(self, resource: ProvisionedResource, reference: SubstrateReference) -> bool:
        if await self._needed(resource, reference):
            return True
        namespace = resource.key.namespace
        try:
            reference, live = await any_version.find(self._cluster, reference, namespace)
        except KindNotServedError:
            return False
        if live is None or not live.held:
            return True
        await self._cluster.substrates.let_go(reference, namespace, uid=live.uid)
        return False

    async def _look(
        self, resource: ProvisionedResource, item: ProtectedObject, xr: XRFacts
    ) -> bool:
        """Do what the table says of one sibling; tell whether it is settled."""
        namespace = resource.key.namespace
        reference, live = await any_version.find(self._cluster, item.reference, namespace)
        step = await self._step(resource, item.reference, live, xr)
        if live is None:
            return step.settled
        if step.let_go:
            await self._cluster.substrates.let_go(reference, namespace, uid=live.uid)
        if step.parting is SiblingCleanup.DELETE:
            await self._cluster.substrates.delete_object(
                reference, namespace, uid=live.uid, foreground=False
            )
        return step.settled

    async def _step(
        self,
        resource: ProvisionedResource,
        reference: SubstrateReference,
        live: LiveObject | None,
        xr: XRFacts,
    ) -> SiblingStep:
        age = (self._clock.now() - resource.updated_at).total_seconds()
        return next_sibling_step(
            SiblingFacts(
                exists=live is not None,
                held=live is not None and live.held,
                needed=await self._needed(resource, reference),
                controlled=live is not None and _is_of(live.controller, resource),
                terminating=live is not None and live.terminating,
                xr=xr,
                pipeline_over=age > waiting_messages.PIPELINE_S,
            )
        )

    async def _needed(self, resource: ProvisionedResource, reference: SubstrateReference) -> bool:
        """Tell whether another aggregate of this cluster lists a sibling and is not Deleted.

        One whose node is out counts until its substrate is gone: a machine needs its network
        to the end.
        """
        unfinished = await self._repository.list_in_namespace(resource.key.namespace)
        return any(
            other.id != resource.id and protection.protects(other.siblings, reference)
            for other in unfinished
        )


def _unknown(
    resource: ProvisionedResource, listed: Sequence[SubstrateReference]
) -> list[ProtectedObject]:
    return [
        ProtectedObject(reference=reference, sibling=True)
        for reference in listed[1:]
        if not protection.protects(resource.protected, reference)
    ]


def _any_uid(resource: ProvisionedResource) -> XRReference:
    """Name the composite whatever its uid: one applied again composes the same siblings."""
    return resource.accepted.xr.model_copy(update={"uid": ""})


def _is_of(controller: XRReference | None, resource: ProvisionedResource) -> bool:
    xr = resource.accepted.xr
    return (
        controller is not None
        and names.group_of(controller.api_version) == names.group_of(xr.api_version)
        and (controller.kind, controller.name) == (xr.kind, xr.name)
    )
