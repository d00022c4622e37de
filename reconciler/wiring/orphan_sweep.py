"""Builds the orphan sweep from its adapters.

The sweep and its ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from function.contract.catalog.published import BlueprintVersionSpec
from reconciler.adapters.kubernetes.cluster import Cluster
from reconciler.adapters.kubernetes.objects.marked_objects import KubernetesMarkedObjects
from reconciler.adapters.kubernetes.objects.orphan_events import KubernetesOrphanReporter
from reconciler.adapters.kubernetes.objects.writes import MayWrite
from reconciler.adapters.postgres.aggregates.orphan_ledger import PostgresOrphanLedger
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.app.housekeeping.orphan_sweep import OrphanSweep
from reconciler.domain.aggregate import ids
from reconciler.ports.cluster.orphans import Kind


def make_orphan_sweep(
    slug: str, store: FencedStore, cluster: Cluster, may_write: MayWrite
) -> OrphanSweep:
    """Make the sweep of one management cluster; it is not run yet.

    Args:
        slug: Which one.
        store: Its rows, behind the fence of the term.
        cluster: Its caches.
        may_write: Raises once the term is over; asked before each write to the cluster.
    """

    def kinds() -> Iterator[Kind]:
        for raw in cluster.caches["blueprintversions"].items().values():
            try:
                xr = BlueprintVersionSpec.model_validate(raw.get("spec") or {}).xr
            except ValidationError:
                continue
            yield xr.api_version, xr.kind

    return OrphanSweep(
        KubernetesMarkedObjects(cluster.client),
        PostgresOrphanLedger(store, ids.management_cluster_id(slug)),
        KubernetesOrphanReporter(cluster.client, may_write),
        records=cluster.records.items,
        kinds=kinds,
    )
