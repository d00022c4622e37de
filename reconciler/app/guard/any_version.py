"""Reading an object although the version that it is remembered in may be served no longer.

That one read, for whoever looks at what others make. Source: docs/decisions/0016.
"""

from __future__ import annotations

from function.contract.record import SubstrateReference
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError, LiveObject


async def read(
    cluster: ManagementCluster, reference: SubstrateReference, namespace: str
) -> LiveObject | None:
    """Read an object by whichever version of its group serves its kind; None when it is gone.

    Raises:
        KindNotServedError: None does.
        NotAllowedError: It may not be read.
    """
    return (await find(cluster, reference, namespace))[1]


async def find(
    cluster: ManagementCluster, reference: SubstrateReference, namespace: str
) -> tuple[SubstrateReference, LiveObject | None]:
    """Read an object, and return the reference by which it can be written, too; as `read`."""
    try:
        return reference, await cluster.substrates.get_object(reference, namespace)
    except KindNotServedError as error:
        if error.elsewhere is None:
            raise
        other = reference.model_copy(update={"api_version": error.elsewhere})
    return other, await cluster.substrates.get_object(other, namespace)
