"""How the orphan sweep is put together from its adapters.

Belongs here: the sweep and its ports. Not here: when it runs, which `reconciler.wiring.leading`
decides; it alone imports this.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from function.contract.catalog import BlueprintVersionSpec
from reconciler.adapters.kubernetes.cluster import Cluster
from reconciler.adapters.kubernetes.effects import MayWrite
from reconciler.adapters.kubernetes.marked_objects import KubernetesMarkedObjects
from reconciler.adapters.kubernetes.orphan_events import KubernetesOrphanTeller
from reconciler.adapters.postgres.fence import Store
from reconciler.adapters.postgres.orphan_ledger import PostgresOrphanLedger
from reconciler.app.orphan_sweep import OrphanSweep
from reconciler.domain.broker import ids
from reconciler.ports.orphans import Kind


def make_orphan_sweep(
    slug: str, store: Store, cluster: Cluster, may_write: MayWrite
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
        KubernetesOrphanTeller(cluster.client, may_write),
        records=cluster.records.items,
        kinds=kinds,
    )
