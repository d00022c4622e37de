"""What all lives of a test share: an API server and a database, and who speaks to them.

Opening and closing it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from dev.controlplane import ControlPlane
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.adapters.postgres.connection.pool import open_pool
from tests.contract.cluster_worlds import reconciler_kubeconfig
from tests.e2e.deploy.identity import BREAK_GLASS, CROSSPLANE, MASTERS, Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all lives share.

    Attributes:
        pool: To the database, as the broker opens it.
        client: Under the reconciler's own account.
        viewer: Under an account that may see everything.
        admin: Somebody whom nothing is refused.
        crossplane: Crossplane as the policies know it, with every right.
    """

    pool: asyncpg.Pool
    client: KubernetesClient
    viewer: KubernetesClient
    admin: Caller
    crossplane: Caller


@asynccontextmanager
async def grounded(plane: ControlPlane, dsn: str) -> AsyncIterator[Ground]:
    """Open connections to both."""
    anybody = Caller(plane.kubeconfig)
    pool = await open_pool(dsn)
    client = await open_client(reconciler_kubeconfig(plane))
    viewer = await open_client(plane.kubeconfig)
    try:
        yield Ground(
            pool=pool,
            client=client,
            viewer=viewer,
            admin=anybody.as_user("tests", MASTERS, BREAK_GLASS),
            crossplane=anybody.as_user(CROSSPLANE, MASTERS),
        )
    finally:
        await viewer.close()
        await client.close()
        await pool.close()
