"""Members of a pool that was orphaned and applied again smaller: nobody composes them any more.

An XR applied again takes over what it composes by its names. What it does not compose, the
function never hears of: it is in no reference, and no step gives its name. Belongs here: telling
such a record from one that is about to be taken over, and asking for its teardown. Not here:
the teardown itself. Source: design §2 "Orphan deletion", §3; docs/decisions/0002, 0012.
"""

from __future__ import annotations

from typing import Final

from reconciler.app import waiting
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.release import XRFacts
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.ports.cluster import KindNotServedError, ManagementCluster
from reconciler.ports.common import Clock

SETTLED_S: Final = waiting.PIPELINE_S
"""How long an XR must be at rest before what it leaves out counts as left out: a step may
compose one member after the other, and the longest run may have begun before."""


class Leftovers:
    """Drains what an XR applied again composes no more."""

    def __init__(self, cluster: ManagementCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def drain(self, resource: ProvisionedResource, view: RecordView) -> None:
        """Delete a record that is left over, so that its node is taken down in order.

        It is left over when its XR, of the same name, lives and is at rest, and controls
        neither it nor its substrate. The XR is read first: whatever it composes was taken
        over before it came to rest.

        Idempotency: one that was taken over meanwhile stays, one that terminates is no news.
        """
        if not resource.enrolled or view.controller_uid is not None or view.terminating:
            return
        anybody = resource.accepted.xr.model_copy(update={"uid": ""})
        try:
            xr = await self._cluster.get_xr_facts(anybody, view.namespace)
            if not self._at_rest(xr):
                return
            live = await self._cluster.get_object(resource.protected[0].reference, view.namespace)
        except KindNotServedError:
            return
        if live is None or live.controller is None:
            await self._cluster.delete_loose_record(view.raw)

    def _at_rest(self, xr: XRFacts) -> bool:
        alive = xr.exists and not xr.terminating and not xr.paused
        if not alive or xr.settled_at is None:
            return False
        return (self._clock.now() - xr.settled_at).total_seconds() > SETTLED_S
