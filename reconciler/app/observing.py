"""What a converging tick sees of an aggregate: the facts its phase is decided from.

Belongs here: gathering them, from the record first and by a live GET where it does not
tell. Not here: the decision (`domain.broker.phase`) and its effects (`broker_tick`).
"""

from __future__ import annotations

from dataclasses import dataclass

from function.contract.conditions import ConditionType, Reason, find
from function.contract.strategy import Phase
from reconciler.domain.broker.phase import ObservedXR
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.ports.cluster import ManagementCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The facts, and whether a substrate was lost under a live node."""

    seen: ObservedXR
    lost: bool


class Observer:
    """Looks at the management cluster."""

    def __init__(self, cluster: ManagementCluster) -> None:
        self._cluster = cluster

    async def look(
        self, resource: ProvisionedResource, view: RecordView, *, registered: bool
    ) -> Observation:
        """Return the facts of one tick.

        What the function did not see is looked up once it was there: the first run of an
        XR applied again sees nothing, and a node's substrate may be gone for good.

        Args:
            resource: The aggregate.
            view: Its record.
            registered: Whether its node is in the mesh.
        """
        seen = view.spec.observed
        exists, ready, lost = seen.exists, seen.ready, False
        if not seen.exists and resource.phase is not Phase.PENDING:
            reference = resource.protected[0].reference
            live = await self._cluster.get_object(reference, view.namespace)
            exists = live is not None
            ready = exists and resource.phase in (Phase.ENROLLING, Phase.READY)
            lost = not exists
        observed = ObservedXR(
            exists=exists,
            ready=ready,
            failed=seen.failed,
            node_registered=registered or not resource.node_expected,
            uninjected=resource.uninjected(seen, exists=exists),
        )
        lost = registered and not exists and (lost or _was_lost(view))
        return Observation(seen=observed, lost=lost)


def _was_lost(view: RecordView) -> bool:
    stalled = find(view.status, ConditionType.STALLED)
    return stalled is not None and stalled.reason == Reason.SUBSTRATE_LOST
