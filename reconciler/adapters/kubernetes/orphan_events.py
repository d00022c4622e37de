"""Kubernetes Events of what the orphan sweep found.

Belongs here: one Event on one object. Not here: what is found and when it is told
(`app.orphan_sweep`). Imported by `reconciler.wiring`.
"""

from __future__ import annotations

from reconciler.adapters.kubernetes import events
from reconciler.adapters.kubernetes.client import KubernetesClient
from reconciler.adapters.kubernetes.effects import Effects, MayWrite
from reconciler.domain.broker.orphans import Orphan


class KubernetesOrphanTeller:
    """Implements `ports.orphans.OrphanTeller` on one API server."""

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
