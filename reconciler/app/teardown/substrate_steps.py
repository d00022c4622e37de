"""The steps of a teardown below the node: the substrate is seen, released, and waited for.

Their live reads and effects, each safe to repeat. Source: design §2 "Deletion";
docs/decisions/0006, 0016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from function.contract.conditions import Reason
from function.contract.strategy import SubstrateState
from reconciler.app.protection.children import SubstrateChildren
from reconciler.app.status import waiting_messages
from reconciler.app.teardown.report import TeardownReport
from reconciler.domain.aggregate.children import STUCK_S, RemainingChild
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import protection
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.teardown.release import (
    AbsenceBarrier,
    AbsenceFacts,
    Release,
    next_barrier,
    next_release,
)
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError, LiveObject
from reconciler.ports.store.aggregates import BrokerRepository

_PARTS: Explanation = Explanation(
    reason=Reason.DEPROVISIONING,
    message="The substrate is gone; the objects that it composed are being deleted.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstratePresence:
    """The presence of a substrate, as one step observed it.

    Attributes:
        live: The object; None when it is gone, or another one has its name.
        fence: Whether its absence may be believed.
        left: Its children that are not gone; looked for once it is.
    """

    live: LiveObject | None
    barrier: AbsenceBarrier
    left: Sequence[RemainingChild] = ()

    @property
    def present(self) -> bool:
        """Whether anything of it is there, or may still come."""
        going = self.live is not None or self.barrier is not AbsenceBarrier.PASSED
        return going or any(item.holds for item in self.left)


class SubstrateSteps:
    """Takes substrates down once their nodes are out."""

    def __init__(
        self,
        repository: BrokerRepository,
        cluster: ManagementCluster,
        clock: Clock,
        report: TeardownReport,
    ) -> None:
        self._repository = repository
        self._cluster = cluster
        self._clock = clock
        self._report = report
        self._children = SubstrateChildren(cluster, clock)

    async def look(
        self, resource: ProvisionedResource, view: RecordView | None
    ) -> tuple[ProvisionedResource, SubstratePresence]:
        """See what there is of a substrate, and remember what it is made of while it tells.

        Returns:
            The aggregate, with the children it was found to have.

        Raises:
            KindNotServedError: The substrate's kind is not served.
            NotAllowedError: The substrate may not be read.
        """
        resource, live = await self._read(resource)
        if live is not None and not protection.is_ours(live.controller, resource.accepted.xr):
            live = None
        if live is not None:
            children = await self._children.joined(resource, live)
            if children != resource.children:
                known = replace(resource, children=children, updated_at=self._now(resource))
                resource = await self._repository.update(known)
            return resource, SubstratePresence(live=live, barrier=AbsenceBarrier.PASSED)
        barrier = await self._barrier(resource, view)
        left = await self._children.left(resource) if barrier is AbsenceBarrier.PASSED else ()
        return resource, SubstratePresence(live=None, barrier=barrier, left=left)

    async def delete(
        self, resource: ProvisionedResource, view: RecordView | None, presence: SubstratePresence
    ) -> float:
        """Do one step towards the absence of a substrate and of all that it was made of.

        Returns:
            Seconds after which to come back.
        """
        if presence.live is not None:
            return await self._release(resource, view, presence.live)
        if presence.barrier is not AbsenceBarrier.PASSED:
            wanted = presence.barrier is AbsenceBarrier.AWAIT_FUNCTION
            await self._report.publish(
                resource, view, waiting_messages.FENCED[presence.barrier], absent=wanted
            )
        else:
            why = self._children.told(resource, presence.left) or _PARTS
            await self._report.publish(resource, view, why, absent=True)
        return self._poll(resource)

    async def _read(
        self, resource: ProvisionedResource
    ) -> tuple[ProvisionedResource, LiveObject | None]:
        """Read a substrate; the version that serves its kind now is remembered and used on."""
        namespace = resource.key.namespace
        try:
            return resource, await self._cluster.substrates.get_object(
                resource.substrate.reference, namespace
            )
        except KindNotServedError as error:
            if error.elsewhere is None:
                raise
            moved = protection.moved(resource.protected, error.elsewhere)
        changed = replace(resource, protected=moved, updated_at=self._now(resource))
        resource = await self._repository.update(changed)
        return resource, await self._cluster.substrates.get_object(moved[0].reference, namespace)

    async def _barrier(
        self, resource: ProvisionedResource, view: RecordView | None
    ) -> AbsenceBarrier:
        """Ask whether a substrate that is not there may still be created by a run in flight."""
        over = self._elapsed_s(resource) > waiting_messages.PIPELINE_S
        xr = resource.accepted.xr if view is None else view.xr
        facts = await self._cluster.substrates.get_xr_facts(xr, resource.key.namespace)
        return next_barrier(
            AbsenceFacts(
                xr=facts,
                published=view is None or "xrName" in view.status,
                acknowledged=over if view is None else view.spec.released,
                seen=resource.substrate.released,
                pipeline_over=over,
            )
        )

    async def _release(
        self, resource: ProvisionedResource, view: RecordView | None, live: LiveObject
    ) -> float:
        """Release the substrate as the table says; the annotation comes before the wish.

        Crossplane's delete is refused without the annotation, and a refused delete aborts
        the XR's reconcile, so `released` is set before `Absent` is published.
        """
        cluster = self._cluster
        namespace = resource.key.namespace
        reference = resource.substrate.reference
        xr = resource.accepted.xr if view is None else view.xr
        release = next_release(await cluster.substrates.get_xr_facts(xr, namespace))
        releasing = release is not Release.WAIT_FOR_CROSSPLANE
        resource = await self._remember(resource, live, releasing=releasing)
        if release is Release.LET_CROSSPLANE_DROP and not live.released:
            await cluster.substrates.release(reference, namespace, uid=live.uid)
        if release is Release.WAIT_FOR_CROSSPLANE:
            await self._report.publish(resource, view, waiting_messages.RELEASED[release])
            return self._poll(resource)
        ours = release is Release.DELETE_OURSELVES and not live.terminating
        # Once the wish is published, first: a deletion that is refused is then said once, and
        # not in turn with what its success would be.
        wished = view is None or view.status.get("substrate") == SubstrateState.ABSENT
        if ours and wished:
            await cluster.substrates.delete_object(reference, namespace, uid=live.uid)
        stuck = await self._stuck(resource, live)
        await self._report.publish(
            resource, view, stuck or waiting_messages.RELEASED[release], absent=True
        )
        if ours and not wished:
            await cluster.substrates.delete_object(reference, namespace, uid=live.uid)
        return self._poll(resource)

    async def _stuck(self, resource: ProvisionedResource, live: LiveObject) -> Explanation | None:
        """Say what keeps a substrate that was released long ago; its parts before itself."""
        if (self._clock.now() - resource.updated_at).total_seconds() <= STUCK_S:
            return None
        left = await self._children.left(resource)
        itself = RemainingChild(
            reference=resource.substrate.reference,
            deleting_since=live.deleting_since,
            finalizers=live.finalizers,
        )
        return self._children.told(resource, left) or self._children.told(resource, [itself])

    async def _remember(
        self, resource: ProvisionedResource, live: LiveObject, *, releasing: bool
    ) -> ProvisionedResource:
        """Store the release before it happens, or the deletion would look like a break-in."""
        known = resource.substrate
        seen = ProtectedObject(
            reference=known.reference,
            uid=live.uid,
            seen=True,
            released=releasing or (known.released and known.uid == live.uid),
        )
        if known == seen:
            return resource
        protected = (seen, *resource.siblings)
        changed = replace(resource, protected=protected, updated_at=self._now(resource))
        return await self._repository.update(changed)

    def _poll(self, resource: ProvisionedResource) -> float:
        return waiting_messages.poll_interval_s(self._elapsed_s(resource))

    def _elapsed_s(self, resource: ProvisionedResource) -> float:
        now = self._clock.now()
        return max(0.0, (now - (resource.deletion_requested_at or now)).total_seconds())

    def _now(self, resource: ProvisionedResource) -> datetime:
        return max(self._clock.now(), resource.created_at)
