"""Members of a pool that was orphaned and applied again smaller: nobody composes them any more.

An XR applied again takes over what it composes by its names. What it does not compose, the
function never hears of: it is in no reference, and no step gives its name. Telling such a
record from one that is about to be taken over, and asking for its teardown. Source: design
§2 "Orphan deletion", §3; docs/decisions/0002, 0012.
"""

from __future__ import annotations

from typing import Final

from reconciler.app.status import waiting_messages
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError

SETTLED_S: Final = waiting_messages.PIPELINE_S
"""How long an XR must be at rest before what it leaves out counts as left out: a step may
compose one member after the other, and the longest run may have begun before."""

LOOK_S: Final = 30.0
"""How soon it is asked again whether an XR came to rest, or leaves it out: no watch tells."""


class PoolShrink:
    """Drains what an XR applied again composes no more."""

    def __init__(self, cluster: ManagementCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def drain(self, resource: ProvisionedResource, view: RecordView) -> float | None:
        """Delete a record that is left over, so that its node is taken down in order.

        It is left over when its XR, of the same name, lives and is at rest, and controls
        neither it nor its substrate. The XR is read first: whatever it composes was taken
        over before it came to rest.

        Returns:
            Seconds after which to come back; None when a change will come by itself.

        Idempotency: one that was taken over meanwhile stays, one that terminates is no news.
        """
        if not resource.enrolled or view.controller_uid is not None or view.terminating:
            return None
        anybody = resource.accepted.xr.model_copy(update={"uid": ""})
        try:
            xr = await self._cluster.substrates.get_xr_facts(anybody, view.namespace)
            wait_s = self._until_settled_s(xr)
            if wait_s is not None:
                return wait_s
            live = await self._cluster.substrates.get_object(
                resource.substrate.reference, view.namespace
            )
        except KindNotServedError:
            return LOOK_S
        if live is not None and live.controller is not None:
            return LOOK_S
        await self._cluster.records.delete_loose_record(view.raw)
        return None

    def _until_settled_s(self, xr: XRFacts) -> float | None:
        """Return when an XR will have been at rest for long enough; None once it has."""
        alive = xr.exists and not xr.terminating and not xr.paused
        if not alive or xr.settled_at is None:
            return LOOK_S
        left_s = SETTLED_S - (self._clock.now() - xr.settled_at).total_seconds()
        return left_s if left_s > 0 else None
