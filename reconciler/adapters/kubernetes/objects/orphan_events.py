"""Kubernetes Events of what the orphan sweep found.

One Event on one object.
"""

from __future__ import annotations

from reconciler.adapters.kubernetes.objects import events
from reconciler.adapters.kubernetes.objects.writes import Effects, MayWrite
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.domain.teardown.orphans import Orphan


class KubernetesOrphanReporter:
    """Implements `ports.cluster.orphans.OrphanReporter` on one API server."""

    def __init__(self, client: KubernetesClient, may_write: MayWrite) -> None:
        self._effects = Effects(client, may_write)

    async def tell(self, orphan: Orphan) -> None:
        """Record an Event on what a finding is about, once while the Event is there."""
        involved = orphan.involved
        if involved is None or not involved.namespace:
            return
        subject = {
            "apiVersion": involved.api_version,
            "kind": involved.kind,
            "name": involved.name,
            "uid": involved.uid,
        }
        body = events.manifest(
            subject,
            involved.namespace,
            reason=orphan.finding.event_reason,
            message=orphan.message,
            warning=True,
        )
        await events.record(self._effects, body)
